module @refused_infeed {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %t = stablehlo.create_token : !stablehlo.token
    %r, %u = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) loc("jit(f)/infeed")
    return %r : tensor<2xf32>
  }
}
