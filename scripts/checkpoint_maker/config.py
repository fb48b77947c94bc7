# SPDX-License-Identifier: Apache-2.0
"""config.json and generation_config.json: the released ones with a preset's dimensions."""

import json
import pathlib

from .model import Dims
from .vocabulary import BOS, END_OF_MSG, MEDIA_PAD, PAD

RELEASED = pathlib.Path(__file__).with_name("released_config.json")


def _text_values(d: Dims) -> dict:
    return {
        "attn_res_block_size": d.res_block, "hidden_size": d.hidden,
        "intermediate_size": d.intermediate, "kv_lora_rank": d.kv_lora,
        "moe_intermediate_size": d.moe_intermediate, "num_attention_heads": d.mla_heads,
        "num_experts": d.experts, "num_experts_per_token": d.topk,
        "num_hidden_layers": d.layers, "num_key_value_heads": d.mla_heads,
        "num_shared_experts": d.shared_experts, "q_lora_rank": d.q_lora,
        "qk_nope_head_dim": d.nope, "qk_rope_head_dim": d.rope,
        "routed_expert_hidden_size": d.latent, "routed_scaling_factor": d.routed_scale,
        "v_head_dim": d.v_head, "vocab_size": d.vocab,
    }


def _linear_values(d: Dims) -> dict:
    layers = range(d.layers)
    return {
        "full_attn_layers": [layer + 1 for layer in layers if d.is_mla(layer)],
        "kda_layers": [layer + 1 for layer in layers if not d.is_mla(layer)],
        "head_dim": d.kda_head_dim, "num_heads": d.kda_heads,
        "short_conv_kernel_size": d.conv,
    }


def _vision_values(d: Dims) -> dict:
    v = d.vision
    return {
        "init_pos_emb_height": v.grid, "init_pos_emb_width": v.grid, "mm_hidden_size": v.hidden,
        "patch_size": v.patch, "qkv_hidden_size": v.qkv, "text_hidden_size": d.hidden,
        "vt_hidden_size": v.hidden, "vt_intermediate_size": v.intermediate,
        "vt_num_hidden_layers": v.blocks,
    }


def _replace(section: dict, values: dict) -> None:
    unknown = values.keys() - section.keys()
    assert not unknown, f"not keys of the released config: {unknown}"
    section.update(values)


def config_json(d: Dims) -> str:
    root = json.loads(RELEASED.read_text())
    tokens = {"bos_token_id": d.ranks + BOS, "eos_token_id": d.ranks + END_OF_MSG,
              "pad_token_id": d.ranks + PAD}
    text = root["text_config"]
    _replace(root, tokens | {"media_placeholder_token_id": d.ranks + MEDIA_PAD})
    _replace(text, tokens | _text_values(d))
    _replace(text["linear_attn_config"], _linear_values(d))
    _replace(root["vision_config"], _vision_values(d))
    return json.dumps(root, indent=2)


def generation_config_json(d: Dims) -> str:
    return json.dumps({"max_length": 1048576, "eos_token_id": d.ranks + END_OF_MSG}, indent=2)
