module @refused_dynamic {
  func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
    %r = stablehlo.sine %a : tensor<?xf32> loc("jit(f)/sin")
    return %r : tensor<?xf32>
  }
}
