module @structure {
  func.func @main() -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %c7 = stablehlo.constant dense<7> : tensor<i32>
    %c45 = stablehlo.constant dense<45> : tensor<i32>
    %c10 = stablehlo.constant dense<10> : tensor<i32>
    %cm1 = stablehlo.constant dense<-1> : tensor<i32>
    // the sum of 0..9; the bound is captured
    %w:2 = stablehlo.while(%i = %c0, %s = %c0) : tensor<i32>, tensor<i32>
      cond {
        %p = stablehlo.compare LT, %i, %c10 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %n = stablehlo.add %i, %c1 : tensor<i32>
        %t = func.call @sum(%s, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        stablehlo.return %n, %t : tensor<i32>, tensor<i32>
      }
    // an index that names no branch takes the last
    %k = "stablehlo.case"(%c7) ({
      stablehlo.return %c0 : tensor<i32>
    }, {
      stablehlo.return %c1 : tensor<i32>
    }, {
      %d = func.call @sum(%c1, %c1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %d : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    %kn = "stablehlo.case"(%cm1) ({
      stablehlo.return %c0 : tensor<i32>
    }, {
      stablehlo.return %c7 : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    %x = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
    %x3 = stablehlo.constant dense<[4.5, -6.0]> : tensor<2xf32>
    %c = stablehlo.composite "test.thrice" %x {decomposition = @thrice} : (tensor<2xf32>) -> tensor<2xf32>
    %cb = stablehlo.optimization_barrier %c : tensor<2xf32>
    %t = stablehlo.tuple %c7, %x : tuple<tensor<i32>, tensor<2xf32>>
    %t0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<i32>, tensor<2xf32>>) -> tensor<i32>
    %true = stablehlo.constant dense<true> : tensor<i1>
    %if = "stablehlo.if"(%true) ({
      stablehlo.return %c1 : tensor<i32>
    }, {
      stablehlo.return %c2 : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<2xf32>) -> tensor<i32>
    %token = stablehlo.create_token : !stablehlo.token
    %token2 = stablehlo.after_all %token, %token : !stablehlo.token
    return %w#1, %c45, %k, %c2, %kn, %c7, %cb, %x3, %t0, %c7, %if, %c1, %size, %c2 : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
  }
  func.func private @sum(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
    %r = stablehlo.add %a, %b : tensor<i32>
    return %r : tensor<i32>
  }
  func.func private @thrice(%a: tensor<2xf32>) -> tensor<2xf32> {
    %d = stablehlo.add %a, %a : tensor<2xf32>
    %r = stablehlo.add %a, %d : tensor<2xf32>
    return %r : tensor<2xf32>
  }
}
