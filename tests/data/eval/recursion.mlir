module @recursion {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = func.call @again(%a) : (tensor<2xf32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
  func.func private @again(%a: tensor<2xf32>) -> tensor<2xf32> {
    %b = stablehlo.add %a, %a : tensor<2xf32>
    %r = func.call @again(%b) : (tensor<2xf32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
}
