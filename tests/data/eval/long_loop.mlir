module @long_loop {
  func.func @main(%n: tensor<i32>) -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %x = stablehlo.constant dense<1> : tensor<256x256xi32>
    %w:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<256x256xi32>
      cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %flat = stablehlo.reshape %y : (tensor<256x256xi32>) -> tensor<65536xi32>
        %back = stablehlo.reshape %flat : (tensor<65536xi32>) -> tensor<256x256xi32>
        stablehlo.return %j, %back : tensor<i32>, tensor<256x256xi32>
      }
    return %w#0 : tensor<i32>
  }
}
