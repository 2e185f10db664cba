module @refused_compute_on_host {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %d = stablehlo.cosine %a {mhlo.frontend_attributes = {_xla_compute_type = "dense"}} : tensor<2xf32>
    %r = stablehlo.sine %d {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : tensor<2xf32> loc("jit(f)/sin")
    return %r : tensor<2xf32>
  }
}
