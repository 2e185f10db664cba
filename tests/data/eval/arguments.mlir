module @arguments {
  func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xi64>) -> (tensor<2x3xf32>, tensor<3xi64>) {
    %r = stablehlo.add %a, %a : tensor<2x3xf32>
    return %r, %b : tensor<2x3xf32>, tensor<3xi64>
  }
}
