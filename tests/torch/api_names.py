# SPDX-License-Identifier: Apache-2.0
"""Which functions of api.py need no argument: pytest's own process imports no torch_xla."""

PLAIN = """add_and_multiply printed linear_layer mixed_devices views in_place_chain moved_view
    data_types remainder_kept truth_kept empty_and_scalar empty_kept many_parameters gradients
    own_function_and_hooks accumulated_and_clipped checkpointed
    in_memory dropout_scales counts metrics closures eager compiled
    stablehlo loaders collectives profile""".split()
OPTIMIZERS = "sgd adam adamw rmsprop adagrad adadelta adamax nadam".split()
