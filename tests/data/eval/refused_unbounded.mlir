module @refused_unbounded {
  func.func @main(%a: tensor<2xf32>) -> tensor<i32> {
    %s = stablehlo.constant dense<2> : tensor<1xi32>
    %r = stablehlo.dynamic_reshape %a, %s : (tensor<2xf32>, tensor<1xi32>) -> tensor<?xf32> loc("jit(f)/reshape")
    %n = stablehlo.get_dimension_size %r, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    return %n : tensor<i32>
  }
}
