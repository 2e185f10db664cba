module @index {
  func.func @main() -> (tensor<1x2xi32>, tensor<1x2xi32>, tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<1x4xui8>, tensor<1x4xui8>, tensor<1xui32>, tensor<1xui32>) {
    %c1 = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
    %c2 = stablehlo.constant dense<-9> : tensor<i64>
    %c3 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    // starts are moved inside
    %v4 = "stablehlo.dynamic_slice"(%c1, %c3, %c3) <{slice_sizes = array<i64: 1, 2>}> : (tensor<2x3xi32>, tensor<ui64>, tensor<ui64>) -> tensor<1x2xi32>
    %c5 = stablehlo.constant dense<[[5, 6]]> : tensor<1x2xi32>
    %c6 = stablehlo.constant dense<[[9, 9]]> : tensor<1x2xi32>
    %v7 = stablehlo.dynamic_update_slice %c1, %c6, %c2, %c2 : (tensor<2x3xi32>, tensor<1x2xi32>, tensor<i64>, tensor<i64>) -> tensor<2x3xi32>
    %c8 = stablehlo.constant dense<[[9, 9, 3], [4, 5, 6]]> : tensor<2x3xi32>
    %c9 = stablehlo.constant dense<[[0, 1], [7, -7]]> : tensor<2x2xi32>
    %v10 = "stablehlo.gather"(%c1, %c9) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<2x3xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
    %c11 = stablehlo.constant dense<[[2, 3], [4, 5]]> : tensor<2x2xi32>
    // batching dims: each row by its own index
    %c12 = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
    %v13 = "stablehlo.gather"(%c1, %c12) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2xi32>
    %c14 = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
    // windows that stick out are left out, the others add up
    %c15 = stablehlo.constant dense<[[1], [2], [-1], [0], [1]]> : tensor<5x1xi32>
    %c16 = stablehlo.constant dense<[[10, 20], [1, 1], [1, 1], [5, 6], [100, 200]]> : tensor<5x2xi32>
    %c17 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
    %v18 = "stablehlo.scatter"(%c17, %c15, %c16) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<3xi32>, tensor<5x1xi32>, tensor<5x2xi32>) -> tensor<3xi32>
    %c19 = stablehlo.constant dense<[6, 118, 223]> : tensor<3xi32>
    // negative padding cuts, interior padding spreads
    %c20 = stablehlo.constant dense<0> : tensor<i32>
    %v21 = stablehlo.pad %c1, %c20, low = [1, -1], high = [0, 2], interior = [1, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<4x6xi32>
    %c22 = stablehlo.constant dense<[[0, 0, 0, 0, 0, 0], [0, 2, 0, 3, 0, 0], [0, 0, 0, 0, 0, 0], [0, 5, 0, 6, 0, 0]]> : tensor<4x6xi32>
    // bits between widths: the low part first
    %c23 = stablehlo.constant dense<[305419896]> : tensor<1xui32>
    %v24 = stablehlo.bitcast_convert %c23 : (tensor<1xui32>) -> tensor<1x4xui8>
    %c25 = stablehlo.constant dense<[[120, 86, 52, 18]]> : tensor<1x4xui8>
    %v26 = stablehlo.bitcast_convert %v24 : (tensor<1x4xui8>) -> tensor<1xui32>
    %c27 = stablehlo.constant dense<[305419896]> : tensor<1xui32>
    return %v4, %c5, %v7, %c8, %v10, %c11, %v13, %c14, %v18, %c19, %v21, %c22, %v24, %c25, %v26, %c27 : tensor<1x2xi32>, tensor<1x2xi32>, tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<1x4xui8>, tensor<1x4xui8>, tensor<1xui32>, tensor<1xui32>
  }
}
