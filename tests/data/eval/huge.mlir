module @huge {
  func.func @main(%a: tensor<2xf32>) -> tensor<i64> {
    %s = stablehlo.add %a, %a : tensor<2xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [2] : (tensor<2xf32>) -> tensor<100000x100000x2xf32> loc("jit(f)/grow")
    %n = stablehlo.constant dense<1> : tensor<i64>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<100000x100000x2xf32>, tensor<f32>) -> tensor<f32>
    %c = stablehlo.convert %r : (tensor<f32>) -> tensor<i64>
    %o = stablehlo.add %c, %n : tensor<i64>
    return %o : tensor<i64>
  }
}
