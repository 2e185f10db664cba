module @refused_custom_call {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = stablehlo.custom_call @somebody.else(%a) : (tensor<2xf32>) -> tensor<2xf32> loc("jit(f)/call")
    return %r : tensor<2xf32>
  }
}
