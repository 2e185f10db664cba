# SPDX-License-Identifier: Apache-2.0
# broad JAX corpus; each entry (tag, fn, args).  Usable with any platform.
import jax, jax.numpy as jnp, numpy as np, functools
from jax import lax
import jax.scipy as jsp
S=jax.ShapeDtypeStruct
f32,bf16,f16,i32,u32,i8,u8,b1,c64,i64,f64=jnp.float32,jnp.bfloat16,jnp.float16,jnp.int32,jnp.uint32,jnp.int8,jnp.uint8,jnp.bool_,jnp.complex64,jnp.int64,jnp.float64
V=S((16,),f32); M=S((8,16),f32); A=S((16,16),f32); B3=S((4,8,16),f32); I=S((16,),i32); X=S((2,8,8,3),f32); K=S((2,),u32)
C={}
def add(cat,tag,fn,*args):
    C['%s/%s'%(cat,tag)]=(fn,args)
class _N:
    def __init__(s,m): s.m=m
    def __getattr__(s,n):
        try: return getattr(s.m,n)
        except AttributeError: return None

# ---- elementwise
for n in 'abs exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan tanh sinh cosh arcsin arccos arctan arcsinh arccosh arctanh floor ceil rint round trunc sign square reciprocal negative positive isfinite isnan isinf signbit degrees radians sinc i0 nan_to_num'.split():
    hasattr(jnp,n) and add('elt',n,getattr(jnp,n),V)
for n in 'add subtract multiply divide power maximum minimum mod remainder fmod floor_divide arctan2 hypot logaddexp logaddexp2 copysign nextafter heaviside float_power equal not_equal less less_equal greater greater_equal ldexp divmod'.split():
    if n=='ldexp': add('elt',n,jnp.ldexp,V,I)
    else: add('elt',n,getattr(jnp,n),V,V)
for n in 'bitwise_and bitwise_or bitwise_xor left_shift right_shift add multiply floor_divide mod power maximum gcd lcm'.split():
    add('int',n,getattr(jnp,n),I,I)
for n in 'bitwise_not abs sign bitwise_count'.split(): add('int',n,getattr(jnp,n),I)
add('int','clz',lax.clz,I); add('int','popcnt',lax.population_count,I); add('int','srl',lax.shift_right_logical,I,I)
for d in (bf16,f16,i8,u8,i32,u32,b1,c64,jnp.int4,jnp.uint4,jnp.int2,jnp.float8_e4m3fn,jnp.float8_e5m2,jnp.float8_e4m3b11fnuz,jnp.float4_e2m1fn,jnp.int16,jnp.uint16):
    add('cast','f32_to_'+jnp.dtype(d).name,lambda x,d=d:x.astype(d),V)
    add('cast',jnp.dtype(d).name+'_to_f32',lambda x:(x.real if x.dtype==c64 else x).astype(f32),S((16,),d))
for d in (bf16,f16): add('cast','mm_'+jnp.dtype(d).name,lambda a,b:a@b,S((8,16),d),S((16,4),d))
add('cast','bitcast',lambda x:lax.bitcast_convert_type(x,i32),V); add('cast','bitcast8',lambda x:lax.bitcast_convert_type(x,u8),V); add('cast','reduce_precision',lambda x:lax.reduce_precision(x,8,7),V)
add('cast','stochastic_round_clip',lambda x:jnp.clip(x,-1,1),V)
for n in 'real imag conj angle abs exp log sqrt sin tanh sign reciprocal square'.split(): add('cplx',n,getattr(jnp,n),S((16,),c64))
add('cplx','mul',lambda a,b:a*b/(a+b),S((16,),c64),S((16,),c64)); add('cplx','complex',lax.complex,V,V); add('cplx','pow',lambda a,b:a**b,S((16,),c64),S((16,),c64)); add('cplx','matmul',lambda a,b:a@b,S((8,8),c64),S((8,8),c64))
for n in 'logical_and logical_or logical_xor'.split(): add('elt',n,getattr(jnp,n),S((16,),b1),S((16,),b1))
add('elt','where',jnp.where,S((16,),b1),V,V); add('elt','clip',lambda x:jnp.clip(x,0,1),V); add('elt','lerp',lambda a,b:a+(b-a)*0.5,V,V)
# ---- reductions
for n in 'sum mean max min prod any all argmax argmin var std median nanmean nansum ptp cumsum cumprod cummax count_nonzero nanmax average'.split():
    f=getattr(lax,n) if n=='cummax' else getattr(jnp,n)
    add('red',n,(lambda x,f=f:f(x,axis=1)) if n!='cummax' else lambda x:lax.cummax(x,axis=1),M)
add('red','logsumexp',lambda x:jax.nn.logsumexp(x,axis=-1),M); add('red','quantile',lambda x:jnp.quantile(x,0.3,axis=1),M); add('red','sum_int',lambda x:x.sum(),I); add('red','sum_bf16',lambda x:x.sum(-1),S((8,16),bf16)); add('red','norm',lambda x:jnp.linalg.norm(x,axis=-1),M); add('red','cumlogsumexp',lambda x:lax.cumlogsumexp(x,axis=1),M); add('red','reduce_and',lambda x:jnp.all(x>0),M)
add('red','reduce_gen',lambda x:lax.reduce(x,np.float32(0),lambda a,b:a*2+b,(0,)),M); add('red','diff',lambda x:jnp.diff(x),M); add('red','trapezoid',lambda x:jnp.trapezoid(x),V); add('red','cov',lambda x:jnp.cov(x),M); add('red','corrcoef',jnp.corrcoef,M); add('red','histogram',lambda x:jnp.histogram(x,bins=8),V)
# ---- shape
add('shape','reshape',lambda x:x.reshape(4,32),M); add('shape','transpose',lambda x:x.T,M); add('shape','concat',lambda a,b:jnp.concatenate([a,b],0),M,M); add('shape','stack',lambda a,b:jnp.stack([a,b]),M,M); add('shape','tile',lambda x:jnp.tile(x,(2,3)),M); add('shape','repeat',lambda x:jnp.repeat(x,3,axis=1),M); add('shape','pad',lambda x:jnp.pad(x,1),M); add('shape','pad_reflect',lambda x:jnp.pad(x,2,mode='reflect'),M); add('shape','pad_edge',lambda x:jnp.pad(x,2,mode='edge'),M); add('shape','lax_pad',lambda x:lax.pad(x,0.,((1,-1,2),(0,0,0))),M); add('shape','lax_pad_neg',lambda x:lax.pad(x,0.,((-3,2,1),(-2,-1,2))),M); add('shape','lax_pad_neg2',lambda x:lax.pad(x,0.,((-1,-2,3),(-4,5,2))),M); add('shape','flip',jnp.flip,M); add('shape','roll',lambda x:jnp.roll(x,3,axis=1),M); add('shape','roll_dyn',lambda x,s:jnp.roll(x,s,axis=1),M,S((),i32)); add('shape','broadcast',lambda x:jnp.broadcast_to(x,(3,8,16)),M); add('shape','arange',lambda:jnp.arange(10,dtype=f32)); add('shape','iota2',lambda:lax.broadcasted_iota(i32,(4,5),1)); add('shape','linspace',lambda a,b:jnp.linspace(a,b,7),S((),f32),S((),f32)); add('shape','eye',lambda:jnp.eye(5)); add('shape','tri',lambda x:jnp.tril(x),A); add('shape','triu',lambda x:jnp.triu(x),A); add('shape','slice',lambda x:x[1:5:2,::-1],M); add('shape','split',lambda x:jnp.split(x,4,axis=1),M); add('shape','diag',jnp.diag,V); add('shape','diagonal',jnp.diagonal,A); add('shape','rot90',jnp.rot90,A); add('shape','kron',jnp.kron,A,A); add('shape','meshgrid',lambda a,b:jnp.meshgrid(a,b),V,V); add('shape','squeeze',lambda x:x[None].squeeze(0),M); add('shape','outer',jnp.outer,V,V); add('shape','const',lambda x:x+np.arange(16,dtype=np.float32),V); add('shape','const_bool',lambda x:jnp.where(np.array([True,False]*8),x,0),V)
# ---- matmul/conv
add('mm','dot',jnp.dot,M,A); add('mm','vecdot',jnp.dot,V,V); add('mm','matvec',lambda a,v:a@v,A,V); add('mm','batch',jnp.matmul,B3,S((4,16,8),f32)); add('mm','einsum1',lambda a,b:jnp.einsum('bij,bkj->bik',a,b),B3,B3); add('mm','einsum2',lambda a,b:jnp.einsum('bshd,bthd->bhst',a,b),S((2,4,3,8),f32),S((2,5,3,8),f32)); add('mm','pref',lambda a,b:lax.dot(a,b,preferred_element_type=f32),S((8,16),bf16),S((16,4),bf16)); add('mm','int8',lambda a,b:lax.dot(a,b,preferred_element_type=i32),S((8,16),i8),S((16,4),i8)); add('mm','highest',lambda a,b:jnp.dot(a,b,precision='highest'),M,A); add('mm','alg',lambda a,b:lax.dot(a,b,precision=lax.DotAlgorithmPreset.BF16_BF16_F32),M,A); add('mm','fp8',lambda a,b:lax.dot(a,b,preferred_element_type=f32),S((8,16),jnp.float8_e4m3fn),S((16,4),jnp.float8_e4m3fn)); add('mm','tensordot',lambda a,b:jnp.tensordot(a,b,2),B3,S((8,16,5),f32)); add('mm','ragged_dot',lambda a,b,g:lax.ragged_dot(a,b,g),S((8,16),f32),S((3,16,4),f32),S((3,),i32)); add('mm','scaled',lambda a,b:jax.nn.scaled_matmul(a,b,None,None) ,S((2,16,32),f32),S((2,8,32),f32))
def conv(x,w,**k): return lax.conv_general_dilated(x,w,dimension_numbers=('NHWC','HWIO','NHWC'),**k)
W=S((3,3,3,6),f32)
add('conv','same',lambda x,w:conv(x,w,window_strides=(1,1),padding='SAME'),X,W); add('conv','strided',lambda x,w:conv(x,w,window_strides=(2,2),padding='VALID'),X,W); add('conv','grouped',lambda x,w:conv(x,w,window_strides=(1,1),padding='SAME',feature_group_count=3),X,S((3,3,1,6),f32)); add('conv','dilated',lambda x,w:conv(x,w,window_strides=(1,1),padding='SAME',rhs_dilation=(2,2)),X,W); add('conv','transpose',lambda x,w:lax.conv_transpose(x,w,(2,2),'SAME'),X,W); add('conv','1d',lambda x,w:lax.conv_general_dilated(x,w,(1,),'SAME'),S((2,3,16),f32),S((4,3,5),f32)); add('conv','3d',lambda x,w:lax.conv_general_dilated(x,w,(1,1,1),'SAME'),S((1,2,6,6,6),f32),S((4,2,3,3,3),f32)); add('conv','npconv',lambda a,b:jnp.convolve(a,b),V,S((3,),f32)); add('conv','batchgroup',lambda x,w:lax.conv_general_dilated(x,w,(1,1),'SAME',batch_group_count=2),S((2,3,8,8),f32),S((4,3,3,3),f32)); add('conv','bf16',lambda x,w:conv(x,w,window_strides=(1,1),padding='SAME'),S((2,8,8,3),bf16),S((3,3,3,6),bf16)); add('conv','grad',lambda x,w:jax.grad(lambda x,w:conv(x,w,window_strides=(2,2),padding='SAME').sum(),(0,1))(x,w),X,W); add('conv','correlate2d',lambda a,b:jsp.signal.correlate2d(a,b),A,S((3,3),f32)); add('conv','patches',lambda x:lax.conv_general_dilated_patches(x,(3,3),(1,1),'SAME'),S((2,3,8,8),f32))
def pool(x,op,init): return lax.reduce_window(x,init,op,(1,2,2,1),(1,2,2,1),'VALID')
add('pool','max',lambda x:pool(x,lax.max,-np.inf),X); add('pool','avg',lambda x:pool(x,lax.add,0.)/4,X); add('pool','maxgrad',lambda x:jax.grad(lambda x:(pool(x,lax.max,-np.inf)**2).sum())(x),X); add('pool','avggrad',lambda x:jax.grad(lambda x:(pool(x,lax.add,0.)**2).sum())(x),X); add('pool','maxgrad2',lambda x:jax.hessian(lambda x:(pool(x,lax.max,-np.inf)**2).sum())(x),S((1,4,4,1),f32)); add('pool','same',lambda x:lax.reduce_window(x,-np.inf,lax.max,(1,3,3,1),(1,2,2,1),'SAME'),X)
# ---- indexing
add('idx','take',lambda x,i:jnp.take(x,i,axis=0),A,I); add('idx','fancy',lambda x,i:x[i],A,I); add('idx','fancy2',lambda x,i,j:x[i,j],A,I,I); add('idx','clip',lambda x,i:x.at[i].get(mode='clip'),A,I); add('idx','fill',lambda x,i:x.at[i].get(mode='fill'),A,I); add('idx','scalar',lambda x,i:x[i],A,S((),i32)); add('idx','taa',lambda x,i:jnp.take_along_axis(x,i,axis=1),M,S((8,3),i32)); add('idx','set',lambda x,i,v:x.at[i].set(v),A,S((4,),i32),S((4,16),f32)); add('idx','add',lambda x,i,v:x.at[i].add(v),A,S((4,),i32),S((4,16),f32)); add('idx','max',lambda x,i,v:x.at[i].max(v),A,S((4,),i32),S((4,16),f32)); add('idx','mul',lambda x,i,v:x.at[i].mul(v),A,S((4,),i32),S((4,16),f32)); add('idx','apply',lambda x,i:x.at[i].apply(jnp.sin),A,S((4,),i32)); add('idx','setslice',lambda x,v:x.at[2:6].set(v),A,S((4,16),f32)); add('idx','dslice',lambda x,i:lax.dynamic_slice(x,(i,i),(4,4)),A,S((),i32)); add('idx','dus',lambda x,u,i:lax.dynamic_update_slice(x,u,(i,0)),A,S((4,4),f32),S((),i32)); add('idx','vds',lambda x,i:jax.vmap(lambda x,i:lax.dynamic_slice(x,(i,),(4,)))(x,i),A,I); add('idx','vdus',lambda x,u,i:jax.vmap(lambda x,u,i:lax.dynamic_update_slice(x,u,(i,)))(x,u,i),A,S((16,4),f32),I); add('idx','onehot',lambda i:jax.nn.one_hot(i,10),I); add('idx','segsum',lambda x,i:jax.ops.segment_sum(x,i,num_segments=5),A,I); add('idx','segmax',lambda x,i:jax.ops.segment_max(x,i,num_segments=5),A,I); add('idx','bincount',lambda i:jnp.bincount(i,length=10),I); add('idx','embed_grad',lambda t,i:jax.grad(lambda t:t[i].sum())(t),A,I); add('idx','nonzero',lambda x:jnp.nonzero(x,size=5),V); add('idx','unique',lambda x:jnp.unique(x,size=5),I); add('idx','searchsorted',lambda a,b:jnp.searchsorted(a,b),V,V); add('idx','select_n',lambda i,a,b,c:lax.select_n(i,a,b,c),S((16,),i32),V,V,V); add('idx','choose',lambda x,i:jnp.take_along_axis(x,i[...,None],-1),M,S((8,),i32)); add('idx','digitize',lambda a,b:jnp.digitize(a,b),V,V); add('idx','interp',jnp.interp,V,V,V); add('idx','isin',lambda a,b:jnp.isin(a,b),I,I); add('idx','argwhere',lambda x:jnp.argwhere(x,size=4),M); add('idx','scatter_apply_batch',lambda x,i,v:jax.vmap(lambda x,i,v:x.at[i].add(v))(x,i,v),A,I,V)
# ---- sort
add('sort','sort',lambda x:jnp.sort(x,axis=-1),M); add('sort','argsort',lambda x:jnp.argsort(x,axis=-1),M); add('sort','desc',lambda x:jnp.sort(x,descending=True),M); add('sort','topk',lambda x:lax.top_k(x,3),M); add('sort','approx',lambda x:lax.approx_max_k(x,3),M); add('sort','lexsort',lambda a,b:jnp.lexsort((a,b)),V,V); add('sort','multi',lambda a,b:lax.sort((a,b),num_keys=2),V,V); add('sort','partition',lambda x:jnp.partition(x,3),V); add('sort','sort_int',jnp.sort,I); add('sort','sort_c64',jnp.sort,S((16,),c64)); add('sort','topk_grad',lambda x:jax.grad(lambda x:lax.top_k(x,3)[0].sum())(x),M); add('sort','argmax',lambda x:jnp.argmax(x,-1),M)
# ---- control flow
add('ctl','scan',lambda x:lax.scan(lambda c,a:(c+a,jnp.sin(c)),jnp.zeros(16),x),M); add('ctl','scan_unroll',lambda x:lax.scan(lambda c,a:(c+a,c),jnp.zeros(16),x,unroll=2),M); add('ctl','scan_rev',lambda x:lax.scan(lambda c,a:(c+a,c),jnp.zeros(16),x,reverse=True),M); add('ctl','while',lambda x:lax.while_loop(lambda c:c[0]<10,lambda c:(c[0]+1,c[1]*2),(0,x)),V); add('ctl','fori',lambda x:lax.fori_loop(0,5,lambda i,c:c*2+i,x),V); add('ctl','fori_dyn',lambda x,n:lax.fori_loop(0,n,lambda i,c:c.at[i].set(0.),x),V,S((),i32)); add('ctl','cond',lambda p,x:lax.cond(p,lambda x:x*2,lambda x:jnp.sin(x),x),S((),b1),V); add('ctl','switch',lambda i,x,y:lax.switch(i,[lambda:x*2,lambda:x+y,lambda:jnp.sin(y)]),S((),i32),V,V); add('ctl','cond_closure',lambda p,x,y:lax.cond(p,lambda:x@y,lambda:y@x),S((),b1),A,A); add('ctl','vwhile',lambda x:jax.vmap(lambda x:lax.while_loop(lambda c:c<10,lambda c:c*2,x))(x),V); add('ctl','vcond',lambda p,x:jax.vmap(lambda p,x:lax.cond(p,jnp.sin,jnp.cos,x))(p,x),S((16,),b1),V); add('ctl','map',lambda x:lax.map(jnp.sin,x),M); add('ctl','ascan',lambda x:lax.associative_scan(jnp.add,x),V); add('ctl','gradscan',lambda x:jax.grad(lambda x:lax.scan(lambda c,a:(jnp.sin(c)+a,c),jnp.zeros(16),x)[0].sum())(x),M); add('ctl','remat',lambda x:jax.grad(lambda x:jax.checkpoint(lambda x:jnp.sin(jnp.sin(x)))(x).sum())(x),V); add('ctl','optbar',lambda x:lax.optimization_barrier((x,x*2)),V); add('ctl','nested',lambda x:lax.scan(lambda c,a:(lax.fori_loop(0,3,lambda i,d:d+a,c),None),jnp.zeros(16),x)[0],M); add('ctl','pjit_nested',lambda x:jax.jit(jnp.sin)(x)+jax.jit(jnp.cos)(x),V); add('ctl','custom_jvp',lambda x:jax.grad(lambda x:jax.nn.relu(x).sum())(x),V); add('ctl','vmap_switch',lambda i,x:jax.vmap(lambda i,x:lax.switch(i,[jnp.sin,jnp.cos],x))(i,x),I,V); add('ctl','donut_while_cap',lambda x,y:lax.while_loop(lambda c:(c*y).sum()<10,lambda c:c+y,x),V,V); add('ctl','ode',lambda y:__import__('jax.experimental.ode',fromlist=['odeint']).odeint(lambda y,t:-y,y,jnp.linspace(0.,1.,5)),V)
# ---- random
def key(impl=None): return (lambda: jax.random.key(0,impl=impl))
for impl in ('threefry2x32','rbg','unsafe_rbg'):
    k=key(impl)
    add('rng',impl+'_bits',lambda k=k:jax.random.bits(k(),(16,))); add('rng',impl+'_uniform',lambda k=k:jax.random.uniform(k(),(16,))); add('rng',impl+'_normal',lambda k=k:jax.random.normal(k(),(16,))); add('rng',impl+'_split',lambda k=k:jax.random.key_data(jax.random.split(k(),4))); add('rng',impl+'_foldin',lambda k=k:jax.random.key_data(jax.random.fold_in(k(),3)))
k=key()
for n,f in dict(randint=lambda:jax.random.randint(k(),(16,),0,10),bernoulli=lambda:jax.random.bernoulli(k(),0.3,(16,)),categorical=lambda x:jax.random.categorical(k(),x),permutation=lambda:jax.random.permutation(k(),16),choice=lambda:jax.random.choice(k(),10,(4,),replace=False),gamma=lambda:jax.random.gamma(k(),2.,(16,)),beta=lambda:jax.random.beta(k(),2.,3.,(16,)),poisson=lambda:jax.random.poisson(k(),3.,(16,)),tnorm=lambda:jax.random.truncated_normal(k(),-1.,1.,(16,)),exponential=lambda:jax.random.exponential(k(),(16,)),gumbel=lambda:jax.random.gumbel(k(),(16,)),laplace=lambda:jax.random.laplace(k(),(16,)),dirichlet=lambda:jax.random.dirichlet(k(),jnp.ones(4),(3,)),orthogonal=lambda:jax.random.orthogonal(k(),8),mvn=lambda:jax.random.multivariate_normal(k(),jnp.zeros(3),jnp.eye(3)),shuffle2=lambda:jax.random.permutation(k(),jnp.arange(16).reshape(4,4)),bf16normal=lambda:jax.random.normal(k(),(16,),bf16),prng_seed=lambda s:jax.random.normal(jax.random.PRNGKey(s),(16,)),rngbit=lambda:lax.rng_bit_generator(jnp.zeros(4,u32),(16,),u32),rng_uniform=lambda:lax.rng_uniform(0.,1.,(16,)),rademacher=lambda:jax.random.rademacher(k(),(16,)),cauchy=lambda:jax.random.cauchy(k(),(16,)),student=lambda:jax.random.t(k(),3.,(16,)),binomial=lambda:jax.random.binomial(k(),10,0.3,(16,))).items():
    add('rng',n,f,*((M,) if n=='categorical' else (S((),i32),) if n=='prng_seed' else ()))
# ---- nn
for n in 'relu relu6 gelu silu sigmoid softplus elu leaky_relu selu celu hard_tanh hard_sigmoid hard_swish log_sigmoid soft_sign softmax log_softmax standardize glu mish swish squareplus log1mexp sparse_plus'.split():
    if hasattr(jax.nn,n): add('nn',n,getattr(jax.nn,n),M)
add('nn','gelu_exact',lambda x:jax.nn.gelu(x,approximate=False),M); add('nn','dpa',lambda q,k,v:jax.nn.dot_product_attention(q,k,v),*(S((2,8,4,16),f32),)*3); add('nn','dpa_causal',lambda q,k,v:jax.nn.dot_product_attention(q,k,v,is_causal=True),*(S((2,8,4,16),f32),)*3)
def ln(x,g,b): m=x.mean(-1,keepdims=True); v=((x-m)**2).mean(-1,keepdims=True); return (x-m)*lax.rsqrt(v+1e-6)*g+b
add('nn','layernorm',ln,M,V,V); add('nn','batchnorm',lambda x:(x-x.mean((0,1,2)))*lax.rsqrt(x.var((0,1,2))+1e-5),X); add('nn','rmsnorm',lambda x,g:x*lax.rsqrt((x*x).mean(-1,keepdims=True)+1e-6)*g,M,V); add('nn','dropout',lambda x:jnp.where(jax.random.bernoulli(jax.random.key(1),.5,x.shape),x*2,0),M); add('nn','lax_bn_train',lambda x,s,o:lax.batch_norm_training(x,s,o,1e-5,1) if hasattr(lax,'batch_norm_training') else x,M,V,V)
def softmax_ce(l,y): return -jnp.take_along_axis(jax.nn.log_softmax(l),y[:,None],1).mean()
def mlp(p,x):
    for i,(w,b) in enumerate(p):
        x=x@w+b
        if i<len(p)-1: x=jax.nn.relu(x)
    return x
P=[(S((784,64),f32),S((64,),f32)),(S((64,10),f32),S((10,),f32))]
XB=S((32,784),f32); YB=S((32,),i32)
def sgd(p,x,y): l,g=jax.value_and_grad(lambda p:softmax_ce(mlp(p,x),y))(p); return jax.tree.map(lambda a,b:a-0.1*b,p,g),l
def adam_upd(p,m,v,g,t):
    m=jax.tree.map(lambda m,g:.9*m+.1*g,m,g); v=jax.tree.map(lambda v,g:.999*v+.001*g*g,v,g); t=t+1
    return jax.tree.map(lambda p,m,v:p-1e-3*(m/(1-.9**t))/(jnp.sqrt(v/(1-.999**t))+1e-8),p,m,v),m,v,t
def adam(p,m,v,t,x,y): l,g=jax.value_and_grad(lambda p:softmax_ce(mlp(p,x),y))(p); return adam_upd(p,m,v,g,t)+(l,)
add('model','mlp_fwd',mlp,P,XB); add('model','mlp_sgd',sgd,P,XB,YB); add('model','mlp_adam',adam,P,P,P,S((),i32),XB,YB); add('model','mlp_hess',lambda p,x:jax.jvp(jax.grad(lambda p:mlp(p,x).sum()),(p,),(p,))[1],P,XB)
def cnn(p,x):
    for w in p['c']: x=jax.nn.relu(conv(x,w,window_strides=(1,1),padding='SAME')); x=lax.reduce_window(x,-np.inf,lax.max,(1,2,2,1),(1,2,2,1),'SAME')
    return x.reshape(x.shape[0],-1)@p['d']
CP=dict(c=[S((3,3,3,8),f32),S((3,3,8,16),f32)],d=S((2*2*16,10),f32))
add('model','cnn_fwd',cnn,CP,X); add('model','cnn_sgd',lambda p,x,y:jax.tree.map(lambda a,b:a-.1*b,p,jax.grad(lambda p:softmax_ce(cnn(p,x),y))(p)),CP,X,S((2,),i32))
def resblock(p,x):
    def bn(x,s,b): m=x.mean((0,1,2)); v=x.var((0,1,2)); return (x-m)*lax.rsqrt(v+1e-5)*s+b
    h=jax.nn.relu(bn(conv(x,p['w1'],window_strides=(1,1),padding='SAME'),p['s1'],p['b1'])); h=bn(conv(h,p['w2'],window_strides=(1,1),padding='SAME'),p['s2'],p['b2']); return jax.nn.relu(h+x)
RP=dict(w1=S((3,3,8,8),f32),w2=S((3,3,8,8),f32),s1=S((8,),f32),b1=S((8,),f32),s2=S((8,),f32),b2=S((8,),f32))
add('model','resblock_grad',lambda p,x:jax.grad(lambda p:resblock(p,x).sum())(p),RP,S((2,8,8,8),f32))
def block(p,x,mask=None):
    h=ln(x,p['g1'],p['b1']); B,T,D=h.shape; q,k,v=[(h@p[n]).reshape(B,T,4,D//4) for n in('q','k','v')]
    a=jnp.einsum('bthd,bshd->bhts',q,k)/np.sqrt(D//4)
    if mask: a=jnp.where(jnp.tril(jnp.ones((T,T),bool)),a,-1e9)
    o=jnp.einsum('bhts,bshd->bthd',jax.nn.softmax(a),v).reshape(B,T,D)@p['o']; x=x+o
    h=ln(x,p['g2'],p['b2']); return x+jax.nn.gelu(h@p['m1'])@p['m2']
D=32; BP=dict(g1=S((D,),f32),b1=S((D,),f32),g2=S((D,),f32),b2=S((D,),f32),q=S((D,D),f32),k=S((D,D),f32),v=S((D,D),f32),o=S((D,D),f32),m1=S((D,4*D),f32),m2=S((4*D,D),f32))
XT=S((2,8,D),f32)
add('model','vit_block',block,BP,XT); add('model','vit_block_grad',lambda p,x:jax.grad(lambda p:block(p,x).sum())(p),BP,XT); add('model','gpt_block_grad',lambda p,x:jax.grad(lambda p:block(p,x,True).sum())(p),BP,XT); add('model','gpt_scan_layers',lambda p,x:jax.grad(lambda p:lax.scan(lambda x,p:(block(p,x,True),None),x,p)[0].sum())(p),jax.tree.map(lambda s:S((3,)+s.shape,s.dtype),BP),XT); add('model','gpt_bf16',lambda p,x:jax.grad(lambda p:block(p,x,True).astype(f32).sum())(p),jax.tree.map(lambda s:S(s.shape,bf16),BP),S((2,8,D),bf16))
def decode(p,tok,cache,pos):
    x=p['emb'][tok][:,None]; h=ln(x,p['g1'],p['b1']); q=h@p['q']; cache=lax.dynamic_update_slice(cache,(h@p['k']),(0,pos,0)); a=jnp.einsum('btd,bsd->bts',q,cache); a=jnp.where(jnp.arange(cache.shape[1])<=pos,a,-1e9); o=jax.nn.softmax(a)@cache; return jnp.argmax((x+o)[:,0]@p['emb'].T,-1),cache
add('model','decode_kv',decode,dict(BP,emb=S((50,D),f32)),S((2,),i32),S((2,16,D),f32),S((),i32))
def rope(x):
    T,Dh=x.shape[1],x.shape[-1]; t=jnp.arange(T)[:,None]*(10000.**(-jnp.arange(0,Dh,2)/Dh)); c,s=jnp.cos(t),jnp.sin(t); a,b=jnp.split(x,2,-1); return jnp.concatenate([a*c-b*s,a*s+b*c],-1)
add('model','rope',rope,XT)
def lstm(p,x):
    def step(c,xt): h,cc=c; z=xt@p['wi']+h@p['wh']+p['b']; i,f,g,o=jnp.split(z,4,-1); cc=jax.nn.sigmoid(f)*cc+jax.nn.sigmoid(i)*jnp.tanh(g); h=jax.nn.sigmoid(o)*jnp.tanh(cc); return (h,cc),h
    return lax.scan(step,(jnp.zeros((2,16)),)*2,x.swapaxes(0,1))[1]
add('model','lstm_grad',lambda p,x:jax.grad(lambda p:lstm(p,x).sum())(p),dict(wi=S((D,64),f32),wh=S((16,64),f32),b=S((64,),f32)),XT)
add('model','vae_loss',lambda p,x:jax.grad(lambda w:(jax.nn.sigmoid((lambda z:z@w.T)(x@w+jax.random.normal(jax.random.key(0),(32,64))))-x).var())(p),S((784,64),f32),XB)
add('model','moe_topk',lambda g,x:jax.nn.softmax(lax.top_k(x@g,2)[0]),S((16,4),f32),M)
add('model','gp',lambda x,y:(lambda Kc:jsp.linalg.cho_solve((Kc,True),y))(jnp.linalg.cholesky(jnp.exp(-(x[:,None]-x[None])**2)+1e-3*jnp.eye(16))),V,V)
add('model','kmeans',lambda x,c:jax.ops.segment_sum(x,jnp.argmin(((x[:,None]-c)**2).sum(-1),1),4),M,S((4,16),f32))
add('model','resize',lambda x:jax.image.resize(x,(2,16,16,3),'bilinear'),X); add('model','resize_nn',lambda x:jax.image.resize(x,(2,16,16,3),'nearest'),X); add('model','resize_cubic',lambda x:jax.image.resize(x,(2,5,5,3),'cubic'),X); add('model','map_coords',lambda x,a,b:jsp.ndimage.map_coordinates(x,[a,b],1),A,V,V)
# ---- fft/linalg
for n in 'fft ifft rfft fft2 ifft2 fftn fftshift'.split(): add('fft',n,getattr(jnp.fft,n),M)
add('fft','irfft',jnp.fft.irfft,S((8,9),c64)); add('fft','irfft2',jnp.fft.irfft2,S((8,9),c64)); add('fft','rfft_grad',lambda x:jax.grad(lambda x:jnp.abs(jnp.fft.rfft(x)).sum())(x),M); add('fft','fftconv',lambda a,b:jsp.signal.fftconvolve(a,b),V,V); add('fft','stft',lambda x:jsp.signal.stft(x,nperseg=8),S((64,),f32)); add('fft','dct',lambda x:jsp.fft.dct(x),M)
la=jnp.linalg
for n in 'cholesky inv det slogdet eigh eigvalsh eig eigvals svd qr pinv matrix_rank cond'.split(): add('linalg',n,getattr(la,n),A)
add('linalg','solve',la.solve,A,V); add('linalg','lstsq',lambda a,b:la.lstsq(a,b),A,V); add('linalg','svdvals',lambda a:la.svd(a,compute_uv=False),A); add('linalg','lu',lambda a:jsp.linalg.lu(a),A); add('linalg','lu_solve',lambda a,b:jsp.linalg.lu_solve(jsp.linalg.lu_factor(a),b),A,V); add('linalg','trisolve',lambda a,b:jsp.linalg.solve_triangular(a,b,lower=True),A,V); add('linalg','trisolve_b',lambda a,b:lax.linalg.triangular_solve(a,b,left_side=True,lower=True,transpose_a=True,unit_diagonal=True),S((4,8,8),f32),S((4,8,3),f32)); add('linalg','expm',jsp.linalg.expm,A); add('linalg','sqrtm',jsp.linalg.sqrtm,A); add('linalg','schur',jsp.linalg.schur,A); add('linalg','hessenberg',jsp.linalg.hessenberg,A); add('linalg','householder',lambda a,t:lax.linalg.householder_product(a,t),A,V); add('linalg','tridiag',lambda a,b,c,d:lax.linalg.tridiagonal_solve(a,b,c,d),V,V,V,S((16,2),f32)); add('linalg','eigh_tridiag',lambda a,b:jsp.linalg.eigh_tridiagonal(a,b,eigvals_only=True),V,S((15,),f32)); add('linalg','polar',lambda a:jsp.linalg.polar(a),A); add('linalg','chol_b',la.cholesky,S((4,8,8),f32)); add('linalg','chol_grad',lambda a:jax.grad(lambda a:la.cholesky(a).sum())(a),A); add('linalg','eigh_c64',la.eigh,S((8,8),c64)); add('linalg','matrix_power',lambda a:la.matrix_power(a,5),A); add('linalg','qr_full',lambda a:la.qr(a,mode='complete'),S((8,4),f32)); add('linalg','cholesky_update',lambda r,w:lax.linalg.cholesky_update(r,w),A,V); add('linalg','ormqr',lambda a,t,c:lax.linalg.ormqr(a,t,c) if hasattr(lax.linalg,'ormqr') else a,A,V,A); add('linalg','cg',lambda a,b:jsp.sparse.linalg.cg(a,b)[0],A,V); add('linalg','toeplitz',jsp.linalg.toeplitz,V); add('linalg','symprod',lambda a,c:lax.linalg.symmetric_product(a,c),A,A)
# ---- special
sp=jsp.special
for n in 'erf erfc erfinv gammaln digamma i0e i1e i0 i1 expit logit entr ndtr ndtri log_ndtr xlogy xlog1py factorial sici spence'.split():
    if hasattr(sp,n): add('spec',n,getattr(sp,n),*((V,V) if n in('xlogy','xlog1py') else (V,)))
add('spec','igamma',sp.gammainc,V,V); add('spec','igammac',sp.gammaincc,V,V); add('spec','betainc',sp.betainc,V,V,V); add('spec','polygamma',lambda x:sp.polygamma(1,x),V); add('spec','zeta',sp.zeta,V,V); add('spec','erf_bf16',sp.erf,S((16,),bf16)); add('spec','lgamma_f16',sp.gammaln,S((16,),f16)); add('spec','bessel_jn',lambda x:sp.bessel_jn(x,v=3),V); add('spec','norm_cdf',jsp.stats.norm.cdf,V); add('spec','norm_logpdf',jsp.stats.norm.logpdf,V)
# ---- misc/callbacks
add('cb','pure_callback',lambda x:jax.pure_callback(lambda a:np.sin(a),S((16,),f32),x),V); add('cb','io_callback',lambda x:jax.experimental.io_callback(lambda a:a,S((16,),f32),x),V); add('cb','debug_print',lambda x:(jax.debug.print('{}',x),x)[1],V); add('cb','ffi',lambda x:jax.ffi.ffi_call('my_target',S((16,),f32))(x,k=np.int32(3)),V); add('cb','custom_call_layout',lambda x:jax.ffi.ffi_call('t2',S((8,16),f32),has_side_effect=True)(x),M)
add('misc','sparse_bcoo',lambda d,i,v:__import__('jax.experimental.sparse',fromlist=['BCOO']).BCOO((d,i),shape=(16,16))@v,S((8,),f32),S((8,2),i32),V); add('misc','named_scope',lambda x:jax.named_scope('foo')(jnp.sin)(x),V); add('misc','identity',lambda x:x,V); add('misc','empty',lambda x:x,S((0,3),f32)); add('misc','scalar_only',lambda:jnp.float32(3.)); add('misc','multi_out',lambda x:(x,x,x+1),V); add('misc','int_out',lambda x:(x.shape[0],x),V); add('misc','polyval',jnp.polyval,S((4,),f32),V); add('misc','jacfwd',lambda x:jax.jacfwd(lambda x:jnp.sin(x)*x.sum())(x),V); add('misc','vmap_conv',lambda x,w:jax.vmap(lambda x,w:lax.conv(x,w,(1,1),'SAME'))(x,w),S((3,1,2,8,8),f32),S((3,4,2,3,3),f32)); add('misc','cross',jnp.cross,S((8,3),f32),S((8,3),f32)); add('misc','packbits',jnp.packbits,S((16,),u8)); add('misc','unpackbits',jnp.unpackbits,S((2,),u8)); add('misc','fromfunc',lambda:jnp.fromfunction(lambda i,j:i+j,(4,4))); add('misc','piecewise',lambda x:jnp.piecewise(x,[x<0,x>=0],[lambda x:-x,lambda x:x]),V); add('misc','clamp_vec',lambda a,b,c:lax.clamp(a,b,c),V,V,V); add('misc','rng_dtype_u8',lambda:jax.random.bits(jax.random.key(0),(16,),u8)); add('misc','convert_nearest',lambda x:jnp.round(x).astype(i8),V); add('misc','cummin',lambda x:lax.cummin(x,axis=0,reverse=True),M); add('misc','dot_general_pref_bf16',lambda a,b:lax.dot_general(a,b,(((1,),(0,)),((),())),preferred_element_type=bf16),S((8,16),bf16),S((16,4),bf16))
