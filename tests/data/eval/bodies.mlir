module @bodies {
  func.func @main() -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<4xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<4x2xi32>, tensor<4x2xi32>, tensor<4x2xi8>, tensor<4x2xi8>, tensor<2xf32>, tensor<2xf32>) {
    %c1 = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
    %c2 = stablehlo.constant dense<[[10, 20, 30], [40, 50, 60]]> : tensor<2x3xi32>
    %v3 = "stablehlo.map"(%c1, %c2) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.multiply %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
    %c4 = stablehlo.constant dense<[[10, 40, 90], [160, 250, 360]]> : tensor<2x3xi32>
    // two results: the largest and where it is
    %v5 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %c6 = stablehlo.constant dense<[[1, 9, 3], [7, 5, 7]]> : tensor<2x3xi32>
    %c7 = stablehlo.constant dense<-1> : tensor<i32>
    %v8:2 = stablehlo.reduce(%c6 init: %c7), (%v5 init: %c7) across dimensions = [1] : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>)
     reducer(%a: tensor<i32>, %b: tensor<i32>) (%ai: tensor<i32>, %bi: tensor<i32>) {
      %g2 = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %m = stablehlo.select %g2, %a, %b : tensor<i1>, tensor<i32>
      %mi = stablehlo.select %g2, %ai, %bi : tensor<i1>, tensor<i32>
      stablehlo.return %m, %mi : tensor<i32>, tensor<i32>
    }
    %c9 = stablehlo.constant dense<[9, 7]> : tensor<2xi32>
    %c10 = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    // windows with strides, padding and both dilations
    %c11 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    %c12 = stablehlo.constant dense<0> : tensor<i32>
    %v13 = "stablehlo.reduce_window"(%c11, %c12) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, base_dilations = array<i64: 2>, window_dilations = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
    %c14 = stablehlo.constant dense<0> : tensor<4xi32>
    %v15 = "stablehlo.reduce_window"(%c11, %c12) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, base_dilations = array<i64: 2>, window_dilations = array<i64: 2>, padding = dense<[[2, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<4xi32>, tensor<i32>) -> tensor<3xi32>
    %c16 = stablehlo.constant dense<[1, 3, 5]> : tensor<3xi32>
    // of each window the first largest element collects the source
    %c17 = stablehlo.constant dense<[[1, 5, 5, 0], [5, 2, 0, 7]]> : tensor<2x4xi32>
    %c18 = stablehlo.constant dense<[[10, 20]]> : tensor<1x2xi32>
    %v19 = "stablehlo.select_and_scatter"(%c17, %c18, %c12) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %m : tensor<i1>
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<2x4xi32>, tensor<1x2xi32>, tensor<i32>) -> tensor<2x4xi32>
    %c20 = stablehlo.constant dense<[[0, 10, 0, 0], [0, 0, 0, 20]]> : tensor<2x4xi32>
    // sorting is stable, along any dim, and carries other arrays
    %c21 = stablehlo.constant dense<[[3, 1], [1, 1], [2, 0], [1, 2]]> : tensor<4x2xi32>
    %v22 = stablehlo.iota dim = 0 : tensor<4x2xi8>
    %v23:2 = "stablehlo.sort"(%c21, %v22) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %ai: tensor<i8>, %bi: tensor<i8>):
      %m = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %m : tensor<i1>
    }) : (tensor<4x2xi32>, tensor<4x2xi8>) -> (tensor<4x2xi32>, tensor<4x2xi8>)
    %c24 = stablehlo.constant dense<[[1, 0], [1, 1], [2, 1], [3, 2]]> : tensor<4x2xi32>
    %c25 = stablehlo.constant dense<[[1, 2], [3, 0], [2, 1], [0, 3]]> : tensor<4x2xi8>
    // sums that may be empty
    %c26 = stablehlo.constant dense<> : tensor<2x0xf32>
    %c27 = stablehlo.constant dense<1.5> : tensor<f32>
    %v28 = stablehlo.reduce(%c26 init: %c27) applies stablehlo.add across dimensions = [1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<2xf32>
    %c29 = stablehlo.constant dense<1.5> : tensor<2xf32>
    return %v3, %c4, %v8#0, %c9, %v8#1, %c10, %v13, %c14, %v15, %c16, %v19, %c20, %v23#0, %c24, %v23#1, %c25, %v28, %c29 : tensor<2x3xi32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<4xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<4x2xi32>, tensor<4x2xi32>, tensor<4x2xi8>, tensor<4x2xi8>, tensor<2xf32>, tensor<2xf32>
  }
}
