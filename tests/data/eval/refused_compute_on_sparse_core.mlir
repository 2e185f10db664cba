module @refused_compute_on_sparse_core {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = call @f(%a) {mhlo.frontend_attributes = {_xla_compute_type = "sparseoffload"}} : (tensor<2xf32>) -> tensor<2xf32> loc("jit(f)/compute_on")
    return %r : tensor<2xf32>
  }
  func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = stablehlo.sine %a : tensor<2xf32>
    return %r : tensor<2xf32>
  }
}
