# SPDX-License-Identifier: Apache-2.0
k3_fuzz_target(safetensors LINK k3_safetensors)
k3_fuzz_target(config LINK k3_safetensors)
