module @random {
  func.func @main() -> (tensor<5xui32>, tensor<5xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<5xui8>, tensor<5xui8>, tensor<2xui64>, tensor<2xui64>, tensor<5xui32>, tensor<5xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2xui64>, tensor<2xui64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<2xui64>, tensor<2xui64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>) {
    %c1 = stablehlo.constant dense<[8589934593, 17179869187]> : tensor<2xui64>
    %v2:2 = stablehlo.rng_bit_generator %c1, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %c3 = stablehlo.constant dense<[512747620, 1298009047, 1267190206, 761827841, 1383286907]> : tensor<5xui32>
    %c4 = stablehlo.constant dense<[8589934593, 17179869189]> : tensor<2xui64>
    %v5:2 = stablehlo.rng_bit_generator %c1, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui64>)
    %c6 = stablehlo.constant dense<[5574906407289874532, 3272025663544478142]> : tensor<2xui64>
    %c7 = stablehlo.constant dense<[8589934593, 17179869188]> : tensor<2xui64>
    %v8:2 = stablehlo.rng_bit_generator %c1, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui8>)
    %c9 = stablehlo.constant dense<[100, 215, 190, 1, 123]> : tensor<5xui8>
    %c10 = stablehlo.constant dense<[8589934593, 17179869189]> : tensor<2xui64>
    %v11:2 = stablehlo.rng_bit_generator %c1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %c12 = stablehlo.constant dense<[1576285164, 2249660814, 740599976, 2425682526, 2436392515]> : tensor<5xui32>
    %c13 = stablehlo.constant dense<[8589934593, 17179869190]> : tensor<2xui64>
    // the words of a block lie along the first even dim, else the largest
    %v14:2 = stablehlo.rng_bit_generator %c1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>)
    %c15 = stablehlo.constant dense<[[1576285164, 740599976, 2436392515], [2249660814, 2425682526, 1497962777]]> : tensor<2x3xui32>
    %c16 = stablehlo.constant dense<[8589934593, 17179869190]> : tensor<2xui64>
    %v17:2 = stablehlo.rng_bit_generator %c1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x2xui32>)
    %c18 = stablehlo.constant dense<[[1576285164, 2249660814], [740599976, 2425682526], [2436392515, 1497962777]]> : tensor<3x2xui32>
    %c19 = stablehlo.constant dense<[8589934593, 17179869190]> : tensor<2xui64>
    %v20:2 = stablehlo.rng_bit_generator %c1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x3xui32>)
    %c21 = stablehlo.constant dense<[[1576285164, 740599976, 2436392515], [2249660814, 2425682526, 1497962777], [1335360347, 3981753173, 3812192618]]> : tensor<3x3xui32>
    %c22 = stablehlo.constant dense<[8589934593, 17179869193]> : tensor<2xui64>
    %v23:2 = stablehlo.rng_bit_generator %c1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui64>)
    %c24 = stablehlo.constant dense<[9662219624799024108, 10418227120389269672]> : tensor<2xui64>
    %c25 = stablehlo.constant dense<[8589934593, 17179869189]> : tensor<2xui64>
    return %v2#1, %c3, %v2#0, %c4, %v5#1, %c6, %v5#0, %c7, %v8#1, %c9, %v8#0, %c10, %v11#1, %c12, %v11#0, %c13, %v14#1, %c15, %v14#0, %c16, %v17#1, %c18, %v17#0, %c19, %v20#1, %c21, %v20#0, %c22, %v23#1, %c24, %v23#0, %c25 : tensor<5xui32>, tensor<5xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<5xui8>, tensor<5xui8>, tensor<2xui64>, tensor<2xui64>, tensor<5xui32>, tensor<5xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2xui64>, tensor<2xui64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<2xui64>, tensor<2xui64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>, tensor<2xui64>
  }
}
