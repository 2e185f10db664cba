module @refused_bounded {
  func.func @main(%a: tensor<2xf32>) -> tensor<?xf32, #stablehlo.bounds<2>> {
    %n = stablehlo.constant dense<1> : tensor<i32>
    %r = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<2xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<2>> loc("jit(f)/set_size")
    return %r : tensor<?xf32, #stablehlo.bounds<2>>
  }
}
