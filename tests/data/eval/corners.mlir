module @corners {
  func.func @main() -> (tensor<3xi32>, tensor<3xi32>, tensor<4xi32>, tensor<4xi32>, tensor<2xui8>, tensor<2xui8>, tensor<4xi8>, tensor<4xi8>, tensor<3xi8>, tensor<3xi8>, tensor<3xi8>, tensor<3xi8>, tensor<4xf32>, tensor<4xf32>, tensor<2xui32>, tensor<2xui32>, tensor<4xi32>, tensor<4xi32>, tensor<3xui8>, tensor<3xui8>, tensor<3xi1>, tensor<3xi1>, tensor<2xi8>, tensor<2xi8>, tensor<3xi4>, tensor<3xi4>, tensor<3xbf16>, tensor<3xbf16>, tensor<2xf32>, tensor<2xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi16>, tensor<3xi16>, tensor<3xi16>, tensor<3xi16>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // division by zero is all ones, its remainder the dividend; the least by -1 is itself
    %c1 = stablehlo.constant dense<[7, -2147483648, -7]> : tensor<3xi32>
    %c2 = stablehlo.constant dense<[0, -1, 2]> : tensor<3xi32>
    %v3 = stablehlo.divide %c1, %c2 : tensor<3xi32>
    %c4 = stablehlo.constant dense<[-1, -2147483648, -3]> : tensor<3xi32>
    %c5 = stablehlo.constant dense<[7, -2147483648, -7, 7]> : tensor<4xi32>
    %c6 = stablehlo.constant dense<[0, -1, 2, -2]> : tensor<4xi32>
    %v7 = stablehlo.remainder %c5, %c6 : tensor<4xi32>
    %c8 = stablehlo.constant dense<[7, 0, -1, 1]> : tensor<4xi32>
    %c9 = stablehlo.constant dense<[7, 200]> : tensor<2xui8>
    %c10 = stablehlo.constant dense<[0, 3]> : tensor<2xui8>
    %v11 = stablehlo.divide %c9, %c10 : tensor<2xui8>
    %c12 = stablehlo.constant dense<[255, 66]> : tensor<2xui8>
    // shifts by too much, or by a negative number
    %c13 = stablehlo.constant dense<[1, 1, 1, -1]> : tensor<4xi8>
    %c14 = stablehlo.constant dense<[7, 8, -1, 4]> : tensor<4xi8>
    %v15 = stablehlo.shift_left %c13, %c14 : tensor<4xi8>
    %c16 = stablehlo.constant dense<[-128, 0, 0, -16]> : tensor<4xi8>
    %c17 = stablehlo.constant dense<[-1, -1, -1]> : tensor<3xi8>
    %c18 = stablehlo.constant dense<[1, 8, -1]> : tensor<3xi8>
    %v19 = stablehlo.shift_right_logical %c17, %c18 : tensor<3xi8>
    %c20 = stablehlo.constant dense<[127, 0, 0]> : tensor<3xi8>
    %c21 = stablehlo.constant dense<[-128, -128, 64]> : tensor<3xi8>
    %c22 = stablehlo.constant dense<[1, 100, -1]> : tensor<3xi8>
    %v23 = stablehlo.shift_right_arithmetic %c21, %c22 : tensor<3xi8>
    %c24 = stablehlo.constant dense<[-64, -1, 0]> : tensor<3xi8>
    // maximum and minimum: NaN wins, -0 is less than 0
    %c25 = stablehlo.constant dense<[0x7FC00000, 1.0, -0.0, 0.0]> : tensor<4xf32>
    %c26 = stablehlo.constant dense<[1.0, 0x7FC00000, 0.0, -0.0]> : tensor<4xf32>
    %v27 = stablehlo.maximum %c25, %c26 : tensor<4xf32>
    %c28 = stablehlo.constant dense<[0x7FC00000, 0x7FC00000, 0.0, 0.0]> : tensor<4xf32>
    %c29 = stablehlo.constant dense<[0.0, -0.0]> : tensor<2xf32>
    %c30 = stablehlo.constant dense<[-0.0, 0.0]> : tensor<2xf32>
    %v31 = stablehlo.minimum %c29, %c30 : tensor<2xf32>
    %v32 = stablehlo.bitcast_convert %v31 : (tensor<2xf32>) -> tensor<2xui32>
    %c33 = stablehlo.constant dense<2147483648> : tensor<2xui32>
    // conversion saturates; NaN is 0, or true; integers wrap
    %c34 = stablehlo.constant dense<[1.0e10, -1.0e10, 0x7FC00000, -1.9]> : tensor<4xf32>
    %v35 = stablehlo.convert %c34 : (tensor<4xf32>) -> tensor<4xi32>
    %c36 = stablehlo.constant dense<[2147483647, -2147483648, 0, -1]> : tensor<4xi32>
    %c37 = stablehlo.constant dense<[-1.0, 300.0, 254.9]> : tensor<3xf32>
    %v38 = stablehlo.convert %c37 : (tensor<3xf32>) -> tensor<3xui8>
    %c39 = stablehlo.constant dense<[0, 255, 254]> : tensor<3xui8>
    %c40 = stablehlo.constant dense<[0x7FC00000, 0.0, -0.0]> : tensor<3xf32>
    %v41 = stablehlo.convert %c40 : (tensor<3xf32>) -> tensor<3xi1>
    %c42 = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>
    %c43 = stablehlo.constant dense<[300, -200]> : tensor<2xi32>
    %v44 = stablehlo.convert %c43 : (tensor<2xi32>) -> tensor<2xi8>
    %c45 = stablehlo.constant dense<[44, 56]> : tensor<2xi8>
    %c46 = stablehlo.constant dense<[100.0, -100.0, -3.5]> : tensor<3xf32>
    %v47 = stablehlo.convert %c46 : (tensor<3xf32>) -> tensor<3xi4>
    %c48 = stablehlo.constant dense<[7, -8, -3]> : tensor<3xi4>
    %c49 = stablehlo.constant dense<[9007199254740993, 257, 259]> : tensor<3xi64>
    %v50 = stablehlo.convert %c49 : (tensor<3xi64>) -> tensor<3xbf16>
    %c51 = stablehlo.constant dense<[9007199254740992.0, 256.0, 260.0]> : tensor<3xbf16>
    %c52 = stablehlo.constant dense<[1152921573326323713, 16777217]> : tensor<2xi64>
    %v53 = stablehlo.convert %c52 : (tensor<2xi64>) -> tensor<2xf32>
    %c54 = stablehlo.constant dense<[0x5D800001, 16777216.0]> : tensor<2xf32>
    // narrow floats: ties to even, overflow to NaN or infinity
    %c55 = stablehlo.constant dense<[464.0, 465.0, 17.0, 19.0, 0.0009765625, -0.0029296875]> : tensor<6xf32>
    %v56 = stablehlo.convert %c55 : (tensor<6xf32>) -> tensor<6xf8E4M3FN>
    %v57 = stablehlo.convert %v56 : (tensor<6xf8E4M3FN>) -> tensor<6xf32>
    %c58 = stablehlo.constant dense<[448.0, 0x7FC00000, 16.0, 20.0, 0.0, -0.00390625]> : tensor<6xf32>
    %c59 = stablehlo.constant dense<[61440.0, 57344.0, 1.125, 1.375]> : tensor<4xf32>
    %v60 = stablehlo.convert %c59 : (tensor<4xf32>) -> tensor<4xf8E5M2>
    %v61 = stablehlo.convert %v60 : (tensor<4xf8E5M2>) -> tensor<4xf32>
    %c62 = stablehlo.constant dense<[0x7F800000, 57344.0, 1.0, 1.5]> : tensor<4xf32>
    %c63 = stablehlo.constant dense<[-0.0, 241.0, 248.0]> : tensor<3xf32>
    %v64 = stablehlo.convert %c63 : (tensor<3xf32>) -> tensor<3xf8E4M3FNUZ>
    %v65 = stablehlo.convert %v64 : (tensor<3xf8E4M3FNUZ>) -> tensor<3xf32>
    %c66 = stablehlo.constant dense<[0.0, 240.0, 0x7FC00000]> : tensor<3xf32>
    %c67 = stablehlo.constant dense<[57344.0, 70000.0]> : tensor<2xf32>
    %v68 = stablehlo.convert %c67 : (tensor<2xf32>) -> tensor<2xf8E5M2FNUZ>
    %v69 = stablehlo.convert %v68 : (tensor<2xf8E5M2FNUZ>) -> tensor<2xf32>
    %c70 = stablehlo.constant dense<[57344.0, 0x7FC00000]> : tensor<2xf32>
    %c71 = stablehlo.constant dense<[30.0, 31.5]> : tensor<2xf32>
    %v72 = stablehlo.convert %c71 : (tensor<2xf32>) -> tensor<2xf8E4M3B11FNUZ>
    %v73 = stablehlo.convert %v72 : (tensor<2xf8E4M3B11FNUZ>) -> tensor<2xf32>
    %c74 = stablehlo.constant dense<[30.0, 0x7FC00000]> : tensor<2xf32>
    %c75 = stablehlo.constant dense<[240.0, 248.0]> : tensor<2xf32>
    %v76 = stablehlo.convert %c75 : (tensor<2xf32>) -> tensor<2xf8E4M3>
    %v77 = stablehlo.convert %v76 : (tensor<2xf8E4M3>) -> tensor<2xf32>
    %c78 = stablehlo.constant dense<[240.0, 0x7F800000]> : tensor<2xf32>
    %c79 = stablehlo.constant dense<[15.5, 15.8]> : tensor<2xf32>
    %v80 = stablehlo.convert %c79 : (tensor<2xf32>) -> tensor<2xf8E3M4>
    %v81 = stablehlo.convert %v80 : (tensor<2xf8E3M4>) -> tensor<2xf32>
    %c82 = stablehlo.constant dense<[15.5, 0x7F800000]> : tensor<2xf32>
    %c83 = stablehlo.constant dense<[0.25, 0.75, 2.5, 100.0, -5.0]> : tensor<5xf32>
    %v84 = stablehlo.convert %c83 : (tensor<5xf32>) -> tensor<5xf4E2M1FN>
    %v85 = stablehlo.convert %v84 : (tensor<5xf4E2M1FN>) -> tensor<5xf32>
    %c86 = stablehlo.constant dense<[0.0, 1.0, 2.0, 6.0, -4.0]> : tensor<5xf32>
    %c87 = stablehlo.constant dense<[3.0, 2.9, 1.0]> : tensor<3xf32>
    %v88 = stablehlo.convert %c87 : (tensor<3xf32>) -> tensor<3xf8E8M0FNU>
    %v89 = stablehlo.convert %v88 : (tensor<3xf8E8M0FNU>) -> tensor<3xf32>
    %c90 = stablehlo.constant dense<[4.0, 2.0, 1.0]> : tensor<3xf32>
    %c91 = stablehlo.constant dense<[65519.0, 65520.0, 5.9604645e-08]> : tensor<3xf32>
    %v92 = stablehlo.convert %c91 : (tensor<3xf32>) -> tensor<3xf16>
    %v93 = stablehlo.convert %v92 : (tensor<3xf16>) -> tensor<3xf32>
    %c94 = stablehlo.constant dense<[65504.0, 0x7F800000, 5.9604645e-08]> : tensor<3xf32>
    %c95 = stablehlo.constant dense<[1.00390625, 1.01171875]> : tensor<2xf32>
    %v96 = stablehlo.convert %c95 : (tensor<2xf32>) -> tensor<2xbf16>
    %v97 = stablehlo.convert %v96 : (tensor<2xbf16>) -> tensor<2xf32>
    %c98 = stablehlo.constant dense<[1.0, 1.015625]> : tensor<2xf32>
    // total order: -NaN < -inf < -0 < 0 < NaN
    %c99 = stablehlo.constant dense<[0xFFC00000, 0xFF800000, -0.0, 0.0, 0x7F800000, 0.0]> : tensor<6xf32>
    %c100 = stablehlo.constant dense<[0xFF800000, -1.0, 0.0, -0.0, 0x7FC00000, 0.0]> : tensor<6xf32>
    %v101 = stablehlo.compare LT, %c99, %c100, TOTALORDER : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %c102 = stablehlo.constant dense<[true, true, true, false, true, false]> : tensor<6xi1>
    %v103 = stablehlo.compare LT, %c99, %c100, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %c104 = stablehlo.constant dense<[false, true, false, false, false, false]> : tensor<6xi1>
    // clamp, sign, rounding, powers, bits
    %c105 = stablehlo.constant dense<-1.0> : tensor<f32>
    %c106 = stablehlo.constant dense<1.0> : tensor<f32>
    %c107 = stablehlo.constant dense<[-3.0, 0.5, 0x7FC00000, 2.0]> : tensor<4xf32>
    %v108 = stablehlo.clamp %c105, %c107, %c106 : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %c109 = stablehlo.constant dense<[-1.0, 0.5, 0x7FC00000, 1.0]> : tensor<4xf32>
    %c110 = stablehlo.constant dense<[2.5, -2.5, 3.5, 0.4]> : tensor<4xf32>
    %v111 = stablehlo.round_nearest_even %c110 : tensor<4xf32>
    %c112 = stablehlo.constant dense<[2.0, -2.0, 4.0, 0.0]> : tensor<4xf32>
    %v113 = stablehlo.round_nearest_afz %c110 : tensor<4xf32>
    %c114 = stablehlo.constant dense<[3.0, -3.0, 4.0, 0.0]> : tensor<4xf32>
    %c115 = stablehlo.constant dense<[-8.0, 0.0, 1.0, 2.0]> : tensor<4xf32>
    %c116 = stablehlo.constant dense<[0.33333334, 0.0, 0x7FC00000, 10.0]> : tensor<4xf32>
    %v117 = stablehlo.power %c115, %c116 : tensor<4xf32>
    %c118 = stablehlo.constant dense<[0x7FC00000, 1.0, 1.0, 1024.0]> : tensor<4xf32>
    %c119 = stablehlo.constant dense<[2, -1, 3, 1]> : tensor<4xi32>
    %c120 = stablehlo.constant dense<[10, -3, -1, -5]> : tensor<4xi32>
    %v121 = stablehlo.power %c119, %c120 : tensor<4xi32>
    %c122 = stablehlo.constant dense<[1024, -1, 0, 1]> : tensor<4xi32>
    %c123 = stablehlo.constant dense<[5.5, -5.5, 3.0]> : tensor<3xf32>
    %c124 = stablehlo.constant dense<[2.0, 2.0, 0x7F800000]> : tensor<3xf32>
    %v125 = stablehlo.remainder %c123, %c124 : tensor<3xf32>
    %c126 = stablehlo.constant dense<[1.5, -1.5, 3.0]> : tensor<3xf32>
    %c127 = stablehlo.constant dense<[0, 1, -1]> : tensor<3xi16>
    %v128 = stablehlo.count_leading_zeros %c127 : tensor<3xi16>
    %c129 = stablehlo.constant dense<[16, 15, 0]> : tensor<3xi16>
    %v130 = stablehlo.popcnt %c127 : tensor<3xi16>
    %c131 = stablehlo.constant dense<[0, 1, 16]> : tensor<3xi16>
    %c132 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
    %c133 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
    %v134 = stablehlo.add %c132, %c133 : tensor<4xi1>
    %c135 = stablehlo.constant dense<[true, true, true, false]> : tensor<4xi1>
    %c136 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
    %c137 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
    %v138 = stablehlo.multiply %c136, %c137 : tensor<4xi1>
    %c139 = stablehlo.constant dense<[true, false, false, false]> : tensor<4xi1>
    // reduce_precision
    %c140 = stablehlo.constant dense<[1.001953125, 1.0e30, 1.0e-30, 0x7FC00000]> : tensor<4xf32>
    %v141 = stablehlo.reduce_precision %c140, format = e5m10 : tensor<4xf32>
    %c142 = stablehlo.constant dense<[1.001953125, 0x7F800000, 0.0, 0x7FC00000]> : tensor<4xf32>
    %v143 = stablehlo.reduce_precision %c140, format = e8m7 : tensor<4xf32>
    %c144 = stablehlo.constant dense<[1.0, 0x714A0000, 0x0DA20000, 0x7FC00000]> : tensor<4xf32>
    return %v3, %c4, %v7, %c8, %v11, %c12, %v15, %c16, %v19, %c20, %v23, %c24, %v27, %c28, %v32, %c33, %v35, %c36, %v38, %c39, %v41, %c42, %v44, %c45, %v47, %c48, %v50, %c51, %v53, %c54, %v57, %c58, %v61, %c62, %v65, %c66, %v69, %c70, %v73, %c74, %v77, %c78, %v81, %c82, %v85, %c86, %v89, %c90, %v93, %c94, %v97, %c98, %v101, %c102, %v103, %c104, %v108, %c109, %v111, %c112, %v113, %c114, %v117, %c118, %v121, %c122, %v125, %c126, %v128, %c129, %v130, %c131, %v134, %c135, %v138, %c139, %v141, %c142, %v143, %c144 : tensor<3xi32>, tensor<3xi32>, tensor<4xi32>, tensor<4xi32>, tensor<2xui8>, tensor<2xui8>, tensor<4xi8>, tensor<4xi8>, tensor<3xi8>, tensor<3xi8>, tensor<3xi8>, tensor<3xi8>, tensor<4xf32>, tensor<4xf32>, tensor<2xui32>, tensor<2xui32>, tensor<4xi32>, tensor<4xi32>, tensor<3xui8>, tensor<3xui8>, tensor<3xi1>, tensor<3xi1>, tensor<2xi8>, tensor<2xi8>, tensor<3xi4>, tensor<3xi4>, tensor<3xbf16>, tensor<3xbf16>, tensor<2xf32>, tensor<2xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi16>, tensor<3xi16>, tensor<3xi16>, tensor<3xi16>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
