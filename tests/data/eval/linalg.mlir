module @linalg {
  func.func @main() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<f32>, tensor<f32>) {
    %c1 = stablehlo.constant dense<[[4.0, 99.0], [2.0, 5.0]]> : tensor<2x2xf32>
    %c2 = stablehlo.constant dense<[[4.0, 2.0], [99.0, 5.0]]> : tensor<2x2xf32>
    %v3 = stablehlo.cholesky %c1, lower = true : tensor<2x2xf32>
    %c4 = stablehlo.constant dense<[[2.0, 0.0], [1.0, 2.0]]> : tensor<2x2xf32>
    %v5 = stablehlo.cholesky %c2 : tensor<2x2xf32>
    %c6 = stablehlo.constant dense<[[2.0, 1.0], [0.0, 2.0]]> : tensor<2x2xf32>
    %c7 = stablehlo.constant dense<[[(4.0, 0.0), (9.0, 9.0)], [(0.0, 2.0), (5.0, 0.0)]]> : tensor<2x2xcomplex<f32>>
    %v8 = stablehlo.cholesky %c7, lower = true : tensor<2x2xcomplex<f32>>
    %c9 = stablehlo.constant dense<[[(2.0, 0.0), (0.0, 0.0)], [(0.0, 1.0), (2.0, 0.0)]]> : tensor<2x2xcomplex<f32>>
    %c10 = stablehlo.constant dense<[[-1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>
    %v11 = stablehlo.cholesky %c10, lower = true : tensor<2x2xf32>
    %c12 = stablehlo.constant dense<[[0x7FC00000, 0.0], [0x7FC00000, 0x7FC00000]]> : tensor<2x2xf32>
    // only the triangle named is read
    %c13 = stablehlo.constant dense<[[2.0, 77.0], [1.0, 4.0]]> : tensor<2x2xf32>
    %c14 = stablehlo.constant dense<[[2.0], [9.0]]> : tensor<2x1xf32>
    %c15 = stablehlo.constant dense<[[2.0, 8.0]]> : tensor<1x2xf32>
    %v16 = "stablehlo.triangular_solve"(%c13, %c14) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %c17 = stablehlo.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
    %v18 = "stablehlo.triangular_solve"(%c13, %c14) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %c19 = stablehlo.constant dense<[[2.0], [7.0]]> : tensor<2x1xf32>
    %v20 = "stablehlo.triangular_solve"(%c13, %c14) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %c21 = stablehlo.constant dense<[[-0.125], [2.25]]> : tensor<2x1xf32>
    %v22 = "stablehlo.triangular_solve"(%c13, %c15) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %c23 = stablehlo.constant dense<[[0.0, 2.0]]> : tensor<1x2xf32>
    %v24 = "stablehlo.triangular_solve"(%c13, %c15) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>}> : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %c25 = stablehlo.constant dense<[[1.0, 1.75]]> : tensor<1x2xf32>
    %v26 = "stablehlo.triangular_solve"(%c2, %c14) <{left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %c27 = stablehlo.constant dense<[[-0.4], [1.8]]> : tensor<2x1xf32>
    // transforms, and back
    %c28 = stablehlo.constant dense<[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)]> : tensor<4xcomplex<f64>>
    %c29 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
    %v30 = stablehlo.fft %c28, type = FFT, length = [4] : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
    %v31 = stablehlo.fft %c29, type = RFFT, length = [4] : (tensor<4xf64>) -> tensor<3xcomplex<f64>>
    %v32 = stablehlo.fft %v31, type = IRFFT, length = [4] : (tensor<3xcomplex<f64>>) -> tensor<4xf64>
    %v33 = stablehlo.fft %v30, type = IFFT, length = [4] : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
    %v34 = stablehlo.imag %v30 : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
    %c35 = stablehlo.constant dense<[0.0, 2.0, 0.0, -2.0]> : tensor<4xf64>
    %c36 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
    %v37 = stablehlo.real %v33 : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
    %c38 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
    // batch norm of two features over two examples
    %c39 = stablehlo.constant dense<[[1.0, 10.0], [3.0, 30.0]]> : tensor<2x2xf32>
    %c40 = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf32>
    %c41 = stablehlo.constant dense<[0.5, 0.0]> : tensor<2xf32>
    %c42 = stablehlo.constant dense<[2.0, 20.0]> : tensor<2xf32>
    %c43 = stablehlo.constant dense<[1.0, 100.0]> : tensor<2xf32>
    %c44 = stablehlo.constant dense<[[1.0, 2.0], [3.0, 2.0]]> : tensor<2x2xf32>
    %v45:3 = "stablehlo.batch_norm_training"(%c39, %c40, %c41) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
    %c46 = stablehlo.constant dense<[[-1.5, -1.0], [2.5, 1.0]]> : tensor<2x2xf32>
    %c47 = stablehlo.constant dense<[2.0, 20.0]> : tensor<2xf32>
    %c48 = stablehlo.constant dense<[1.0, 100.0]> : tensor<2xf32>
    %v49 = "stablehlo.batch_norm_inference"(%c39, %c40, %c41, %c42, %c43) <{epsilon = 3.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %c50 = stablehlo.constant dense<[[-0.5, -0.985329278], [1.5, 0.985329278]]> : tensor<2x2xf32>
    %v51:3 = "stablehlo.batch_norm_grad"(%c39, %c40, %c42, %c43, %c44) <{epsilon = 1.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
    %c52 = stablehlo.constant dense<[[-0.707106781, 0.0], [0.707106781, 0.0]]> : tensor<2x2xf32>
    %c53 = stablehlo.constant dense<[1.41421356, 0.0]> : tensor<2xf32>
    %c54 = stablehlo.constant dense<[4.0, 4.0]> : tensor<2xf32>
    // groups, dilations and reversal of a convolution
    %c55 = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]> : tensor<1x2x3xf32>
    %c56 = stablehlo.constant dense<[[[1.0, 2.0]], [[1.0, -1.0]]]> : tensor<2x1x2xf32>
    %v57 = stablehlo.convolution(%c55, %c56) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 0]], lhs_dilate = [1], rhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
    %c58 = stablehlo.constant dense<[[[2.0, 5.0], [20.0, 20.0]]]> : tensor<1x2x2xf32>
    // a dot that names bf16 rounds its operands, and sums in f32
    %c59 = stablehlo.constant dense<[1.00390625, 3.0]> : tensor<2xf32>
    %c60 = stablehlo.constant dense<[1.0, 257.0]> : tensor<2xf32>
    %v61 = stablehlo.dot_general %c59, %c60, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
    %c62 = stablehlo.constant dense<769.0> : tensor<f32>
    return %v3, %c4, %v5, %c6, %v8, %c9, %v11, %c12, %v16, %c17, %v18, %c19, %v20, %c21, %v22, %c23, %v24, %c25, %v26, %c27, %v34, %c35, %v32, %c36, %v37, %c38, %v45#0, %c46, %v45#1, %c47, %v45#2, %c48, %v49, %c50, %v51#0, %c52, %v51#1, %c53, %v51#2, %c54, %v57, %c58, %v61, %c62 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<f32>, tensor<f32>
  }
}
