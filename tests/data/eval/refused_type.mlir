module @refused_type {
  func.func @main(%a: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
    %r = stablehlo.atan2 %a, %a : tensor<2xcomplex<f32>> loc("jit(f)/atan2")
    return %r : tensor<2xcomplex<f32>>
  }
}
