module @refused_collective {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32> loc("jit(f)/permute")
    return %r : tensor<2xf32>
  }
}
