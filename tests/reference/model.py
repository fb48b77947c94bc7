# SPDX-License-Identifier: Apache-2.0
"""The Kimi K3 text model in float64, written from the model report and nothing else.

This is the second opinion against which the C programs are tested.  It is meant to be read beside
the report: matrices are [out, in], vectors are rows, and an array of T tokens is [T, width].
Nothing is fused, absorbed or rearranged except where numpy wants a whole array at once, and no
dimension is a constant.

Model.forward takes any number of tokens at a time and carries the sequence in a State, so a prompt
may be fed whole or token by token; both agree to rounding.
"""

import math
from dataclasses import dataclass

import numpy as np

from faults import check_fault

MLA_EPS = 1e-6          # the released class builds its two low-rank norms with the class default
L2NORM_EPS = 1e-6       # fixed in the released KDA kernels
RENORMALISE_EPS = 1e-20


class ConfigError(Exception):
    """config.json lacks something, or asks for something this model does not have."""


# ---- configuration ------------------------------------------------------------------------------

_TEXT_INTS = (
    "hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads", "num_key_value_heads",
    "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
    "first_k_dense_replace", "moe_layer_freq", "intermediate_size", "num_experts",
    "num_experts_per_token", "num_shared_experts", "routed_expert_hidden_size",
    "moe_intermediate_size", "num_expert_group", "topk_group", "attn_res_block_size")
_TEXT_FLOATS = ("rms_norm_eps", "activation_situ_beta", "activation_situ_linear_beta",
                "routed_scaling_factor")
_TEXT_FIXED = {"hidden_act": "situ", "moe_router_activation_func": "sigmoid",
               "mla_use_nope": True, "mla_use_output_gate": True, "latent_moe_use_norm": True,
               "tie_word_embeddings": False, "moe_layer_freq": 1,
               "num_expert_group": 1, "topk_group": 1}
_LINEAR_INTS = ("num_heads", "head_dim", "short_conv_kernel_size")


@dataclass(frozen=True)
class Config:
    """The text model's dimensions and constants, by the report's names."""

    hidden: int
    layers: int
    vocab: int
    eps: float
    situ_beta: float
    situ_linear_beta: float
    mla_heads: int
    q_rank: int
    kv_rank: int
    nope_dim: int
    shared_dim: int
    value_dim: int
    dense_layers: int
    dense_width: int
    experts: int
    experts_per_token: int
    shared_width: int
    latent: int
    expert_width: int
    renormalise: bool
    routed_scale: float
    block_size: int
    kda_heads: int
    kda_dim: int
    conv_taps: int
    gate_lower_bound: float
    mla_layers: frozenset       # 0-based; all other layers are KDA

    @staticmethod
    def from_json(root):
        """root: the parsed config.json.  Every key is required; none has a default."""
        text = root.get("text_config", {})
        linear = text.get("linear_attn_config", {})

        def is_int(value):
            return type(value) is int

        def is_real(value):
            return type(value) in (int, float) and math.isfinite(value)

        def is_layer_list(value):
            return type(value) is list and all(map(is_int, value))

        bad = [key for key in _TEXT_INTS if not is_int(text.get(key))]
        bad += [key for key in _TEXT_FLOATS if not is_real(text.get(key))]
        bad += [key for key in _TEXT_FIXED if key not in text]
        bad += [key for key in ("moe_renormalize",) if type(text.get(key)) is not bool]
        bad += [key for key in _LINEAR_INTS if not is_int(linear.get(key))]
        bad += [key for key in ("gate_lower_bound",) if not is_real(linear.get(key))]
        bad += [key for key in ("kda_layers", "full_attn_layers")
                if not is_layer_list(linear.get(key))]
        bad += [key for key in ("use_full_rank_gate",) if key not in linear]
        if bad:
            raise ConfigError("config.json: missing or ill-typed: " + ", ".join(sorted(set(bad))))
        for key, value in _TEXT_FIXED.items():
            if text[key] != value:
                raise ConfigError(f"config.json: {key} is {text[key]!r}, not {value!r}")
        if linear["use_full_rank_gate"] is not True:
            raise ConfigError("config.json: use_full_rank_gate is not true")
        if text["num_key_value_heads"] != text["num_attention_heads"]:
            raise ConfigError("config.json: num_key_value_heads differs from num_attention_heads")
        if not 1 <= text["num_experts_per_token"] <= text["num_experts"]:
            raise ConfigError("config.json: num_experts_per_token leaves 1..num_experts")

        layers = text["num_hidden_layers"]                    # both lists count from 1
        if sorted(linear["kda_layers"] + linear["full_attn_layers"]) != list(range(1, layers + 1)):
            raise ConfigError("config.json: the layer lists do not split 1..num_hidden_layers")
        return Config(
            hidden=text["hidden_size"], layers=layers, vocab=text["vocab_size"],
            eps=text["rms_norm_eps"], situ_beta=text["activation_situ_beta"],
            situ_linear_beta=text["activation_situ_linear_beta"],
            mla_heads=text["num_attention_heads"], q_rank=text["q_lora_rank"],
            kv_rank=text["kv_lora_rank"], nope_dim=text["qk_nope_head_dim"],
            shared_dim=text["qk_rope_head_dim"], value_dim=text["v_head_dim"],
            dense_layers=text["first_k_dense_replace"], dense_width=text["intermediate_size"],
            experts=text["num_experts"], experts_per_token=text["num_experts_per_token"],
            shared_width=text["num_shared_experts"] * text["moe_intermediate_size"],
            latent=text["routed_expert_hidden_size"], expert_width=text["moe_intermediate_size"],
            renormalise=text["moe_renormalize"], routed_scale=text["routed_scaling_factor"],
            block_size=text["attn_res_block_size"], kda_heads=linear["num_heads"],
            kda_dim=linear["head_dim"], conv_taps=linear["short_conv_kernel_size"],
            gate_lower_bound=linear["gate_lower_bound"],
            mla_layers=frozenset(layer - 1 for layer in linear["full_attn_layers"]))


# ---- functions of a vector ----------------------------------------------------------------------

def sigmoid(x):
    """1 / (1 + e^-x), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def softmax(x, axis):
    """e^x / sum e^x along an axis."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def rms_norm(x, gain, eps):
    """y_i = gain_i * x_i / sqrt(mean_j x_j^2 + eps), over the last axis."""
    return gain * x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def l2_norm(x, fault=None):
    """x / sqrt(sum x^2 + 1e-6) over the last axis: a sum, not a mean."""
    eps = 1e-5 if fault == "l2norm-eps" else L2NORM_EPS
    reduce = np.mean if fault == "l2norm-mean" else np.sum
    return x / np.sqrt(reduce(x * x, axis=-1, keepdims=True) + eps)


def situ(gate, up, beta, linear_beta, fault=None):
    """SiTU-GLU: b1*tanh(g/b1) * sigmoid(g) * b2*tanh(u/b2); the sigmoid takes the uncapped g."""
    capped = beta * np.tanh(gate / beta)
    opened = sigmoid(capped if fault == "sigmoid-capped-gate" else gate)
    return capped * opened * linear_beta * np.tanh(up / linear_beta)


def mix(sources, weight, eps, fault=None):
    """Attention residual: sources [T, E] each, weight = gain * proj [E] -> [T, E].

    s_n = (w . src_n) / sqrt(mean src_n^2 + eps);  p = softmax over n of s;  sum_n p_n src_n.
    The raw sources are added up, not the normalised ones, and there is no 1/sqrt(d).
    """
    stack = np.stack(sources)                                                # [N, T, E]
    root = np.sqrt(np.mean(stack * stack, axis=2) + eps)                     # [N, T]
    p = softmax(stack @ weight / root, axis=0)
    if fault == "mix-normalised-sources":
        stack = stack / root[:, :, None]
    return (p[:, :, None] * stack).sum(axis=0)


def row_sums(products):
    """Sum [R, n] over n by folding halves.

    Each step adds whole columns, so equal rows give equal sums to the last bit.  (A BLAS product
    may round equal rows differently, depending on where they stand.)
    """
    while products.shape[1] > 1:
        half = products.shape[1] // 2
        folded = products[:, :half] + products[:, half:2 * half]
        products = np.concatenate([folded, products[:, 2 * half:]], axis=1)
    return products.sum(axis=1)                                              # n is 0 or 1


# ---- KDA ----------------------------------------------------------------------------------------

class KdaState:
    """One KDA layer of a sequence: S and the projections the short convolution still needs."""

    def __init__(self, config):
        width = config.kda_heads * config.kda_dim
        self.memory = np.zeros((config.kda_heads, config.kda_dim, config.kda_dim))  # S[h][k][v]
        self.history = {name: np.zeros((config.conv_taps - 1, width)) for name in "qkv"}


class Kda:
    """Kimi Delta Attention: a gated delta rule with a decay per head and channel."""

    def __init__(self, checkpoint, prefix, config, fault):
        self.config = config
        self.fault = fault
        heads, dim, width = config.kda_heads, config.kda_dim, config.kda_heads * config.kda_dim
        self.project = {name: checkpoint.matrix(f"{prefix}{name}_proj", width, config.hidden)
                        for name in "qkv"}
        self.taps = {name: checkpoint.vector(f"{prefix}{name}_conv1d.weight",
                                             (width, 1, config.conv_taps))[:, 0, :]
                     for name in "qkv"}
        self.write_strength = checkpoint.matrix(prefix + "b_proj", heads, config.hidden)
        self.decay_down = checkpoint.matrix(prefix + "f_a_proj", dim, config.hidden)
        self.decay_up = checkpoint.matrix(prefix + "f_b_proj", width, dim)
        a_log_length = checkpoint.tensor(prefix + "A_log").shape[0]
        a_log = checkpoint.vector(prefix + "A_log", (a_log_length,))
        if a_log_length < heads:
            raise ConfigError(f"{prefix}A_log has {a_log_length} entries for {heads} heads")
        self.a_factor = np.exp(a_log[:heads])[:, None]                       # by head
        if fault == "alog-padding":
            by_channel = a_log[np.arange(width) % a_log_length].reshape(heads, dim)
            self.a_factor = np.exp(np.minimum(by_channel, 80.0))     # padding may hold anything
        self.dt_bias = checkpoint.vector(prefix + "dt_bias", (width,)).reshape(heads, dim)
        self.out_norm = checkpoint.vector(prefix + "o_norm.weight", (dim,))
        self.out_gate = checkpoint.matrix(prefix + "g_proj", width, config.hidden)
        self.out = checkpoint.matrix(prefix + "o_proj", config.hidden, width)

    def new_state(self):
        return KdaState(self.config)

    def convolve(self, name, projected, state):
        """c_t = sum_j w[c][j] * x_{t-(taps-1)+j}, then SiLU; the last tap is the current token."""
        taps = self.taps[name]
        if self.fault == "tap-order":
            taps = taps[:, ::-1]
        tokens, tap_count = projected.shape[0], self.config.conv_taps
        padded = np.concatenate([state.history[name], projected])
        state.history[name] = padded[tokens:]                # inputs, before the convolution
        c = sum(taps[:, j] * padded[j:j + tokens] for j in range(tap_count))
        return c if self.fault == "no-silu" else c * sigmoid(c)

    def decay(self, x):
        """alpha [T, H, D] = exp(lb * sigmoid(exp(A_log[h]) * (z + dt_bias))), z = Wfb (Wfa x)."""
        z = self.decay_up.apply(self.decay_down.apply(x)).reshape(-1, *self.dt_bias.shape)
        if self.fault == "dt-bias-after":
            argument = self.a_factor * z + self.dt_bias
        else:
            argument = self.a_factor * (z + self.dt_bias)
        return np.exp(self.config.gate_lower_bound * sigmoid(argument))

    def step(self, memory, q, k, v, alpha, beta):
        """One token of the recurrence; memory S [H, D, D] is updated in place.

            S[i][:] *= alpha[i];  r = sum_i k[i] S[i][:];  S[i][:] += k[i] * beta * (v - r)
            o[:] = sum_i q[i] S[i][:], from the updated state

        q, k, v, alpha are [H, D], beta is [H]; returns o [H, D].
        """
        def read(key):
            return np.matmul(key[:, None, :], memory)[:, 0, :]

        stale = read(k) if self.fault == "decay-after-read" else None
        memory *= alpha[:, :, None]
        known = read(k) if stale is None else stale
        early = read(q) if self.fault == "read-before-write" else None
        memory += k[:, :, None] * (beta[:, None] * (v - known))[:, None, :]
        return read(q) if early is None else early

    def forward(self, x, state):
        """x [T, E], already normed -> [T, E]."""
        heads, dim = self.config.kda_heads, self.config.kda_dim
        q, k, v = (self.convolve(name, self.project[name].apply(x), state).reshape(-1, heads, dim)
                   for name in "qkv")
        q = l2_norm(q, self.fault) * dim ** -0.5
        k = l2_norm(k, self.fault)
        beta = sigmoid(self.write_strength.apply(x))
        alpha = self.decay(x)
        o = np.stack([self.step(state.memory, q[t], k[t], v[t], alpha[t], beta[t])
                      for t in range(x.shape[0])])
        gate = sigmoid(self.out_gate.apply(x)).reshape(-1, heads, dim)
        if self.fault == "gate-before-norm":
            o = rms_norm(o * gate, self.out_norm, self.config.eps)
        else:
            o = rms_norm(o, self.out_norm, self.config.eps) * gate
        return self.out.apply(o.reshape(-1, heads * dim))


# ---- MLA ----------------------------------------------------------------------------------------

class MlaState:
    """One MLA layer of a sequence: expanded keys and values, and the shared key, by position."""

    def __init__(self, config):
        self.keys = np.zeros((0, config.mla_heads, config.nope_dim))
        self.values = np.zeros((0, config.mla_heads, config.value_dim))
        self.shared = np.zeros((0, config.shared_dim))

    def append(self, keys, values, shared):
        self.keys = np.concatenate([self.keys, keys])
        self.values = np.concatenate([self.values, values])
        self.shared = np.concatenate([self.shared, shared])


class Mla:
    """Multi-head latent attention without positions, in its expanded form."""

    def __init__(self, checkpoint, prefix, config, fault, mla_eps):
        self.config = config
        self.fault = fault
        self.eps = 1e-5 if fault == "mla-eps" else mla_eps
        heads, hidden = config.mla_heads, config.hidden
        query_dim = config.nope_dim + config.shared_dim
        self.q_down = checkpoint.matrix(prefix + "q_a_proj", config.q_rank, hidden)
        self.q_norm = checkpoint.vector(prefix + "q_a_layernorm.weight", (config.q_rank,))
        self.q_up = checkpoint.matrix(prefix + "q_b_proj", heads * query_dim, config.q_rank)
        self.kv_down = checkpoint.matrix(prefix + "kv_a_proj_with_mqa",
                                         config.kv_rank + config.shared_dim, hidden)
        self.kv_norm = checkpoint.vector(prefix + "kv_a_layernorm.weight", (config.kv_rank,))
        self.kv_up = checkpoint.matrix(prefix + "kv_b_proj",
                                       heads * (config.nope_dim + config.value_dim),
                                       config.kv_rank)
        self.out_gate = checkpoint.matrix(prefix + "g_proj", heads * config.value_dim, hidden)
        self.out = checkpoint.matrix(prefix + "o_proj", hidden, heads * config.value_dim)

    def new_state(self):
        return MlaState(self.config)

    def queries(self, x):
        """cq = rmsnorm(Wqa x);  q = Wqb cq;  head h -> nope | shared: [T, H, dn], [T, H, dr]."""
        config = self.config
        cq = rms_norm(self.q_down.apply(x), self.q_norm, self.eps)
        q = self.q_up.apply(cq).reshape(-1, config.mla_heads, config.nope_dim + config.shared_dim)
        if self.fault == "shared-nope-order":
            return q[:, :, config.shared_dim:], q[:, :, :config.shared_dim]
        return q[:, :, :config.nope_dim], q[:, :, config.nope_dim:]

    def latents(self, x):
        """kv = Wkva x -> the normed latent c [T, R] and the shared key r [T, dr], as it is."""
        kv = self.kv_down.apply(x)
        c = rms_norm(kv[:, :self.config.kv_rank], self.kv_norm, self.eps)
        r = kv[:, self.config.kv_rank:]
        if self.fault == "shared-key-normed":
            r = rms_norm(r, 1.0, self.eps)
        return c, r

    def forward(self, x, state):
        """x [T, E], already normed -> [T, E]."""
        config = self.config
        tokens, past = x.shape[0], state.shared.shape[0]
        qn, qr = self.queries(x)
        c, r = self.latents(x)
        expanded = self.kv_up.apply(c).reshape(tokens, config.mla_heads, -1)
        state.append(expanded[:, :, :config.nope_dim], expanded[:, :, config.nope_dim:], r)

        scaled_dim = config.nope_dim + config.shared_dim
        if self.fault == "scale-nope-only":
            scaled_dim = config.nope_dim
        scores = (np.einsum("thd,shd->hts", qn, state.keys)
                  + np.einsum("thd,sd->hts", qr, state.shared)) * scaled_dim ** -0.5
        is_future = np.arange(past + tokens)[None, :] > past + np.arange(tokens)[:, None]
        p = softmax(np.where(is_future, -np.inf, scores), axis=2)
        y = np.einsum("hts,shd->thd", p, state.values).reshape(tokens, -1)
        return self.out.apply(y * sigmoid(self.out_gate.apply(x)))


# ---- MLP, router and latent mixture of experts --------------------------------------------------

class Mlp:
    """W_down . situ(W_gate x, W_up x)."""

    def __init__(self, checkpoint, names, in_size, width, config, fault):
        gate, up, down = names
        self.gate = checkpoint.matrix(gate, width, in_size)
        self.up = checkpoint.matrix(up, width, in_size)
        self.down = checkpoint.matrix(down, in_size, width)
        self.betas = config.situ_beta, config.situ_linear_beta
        self.fault = fault

    def forward(self, x):
        return self.down.apply(situ(self.gate.apply(x), self.up.apply(x), *self.betas, self.fault))


def choose_experts(scores, bias, config, fault=None):
    """scores s [experts] = sigmoid of the router -> (picked, weights, margin).

    picked: the experts_per_token largest of s + bias, ties to the lower index, in ascending order.
    weights: s[picked], UNbiased; divided by (their sum + 1e-20) if more than one expert is picked
    and the config asks for it; times routed_scaling_factor.
    margin: by how much the last pick beats the best expert left out (None if none is left out).
    """
    count = config.experts_per_token
    biased = scores + bias
    key = scores if fault == "bias-ignored" else biased
    index = np.arange(len(scores))
    order = np.lexsort((-index if fault == "tie-higher-index" else index, -key))
    picked = np.sort(order[:count])
    margin = float(key[order[count - 1]] - key[order[count]]) if count < len(scores) else None

    weights = (biased if fault == "bias-in-weight" else scores)[picked]
    if count > 1 and config.renormalise and fault != "no-renormalise":
        weights = weights / (weights.sum() + RENORMALISE_EPS)
    return picked, weights * config.routed_scale, margin


class LatentMoe:
    """Routed experts in a latent space, plus one shared MLP on the full width.

        z = W_down x;  u = sum_e w_e * expert_e(z);  y = W_up . rmsnorm(u);  out = y + shared(x)
    """

    def __init__(self, checkpoint, prefix, config, fault):
        self.checkpoint = checkpoint
        self.prefix = prefix
        self.config = config
        self.fault = fault
        self.router = checkpoint.matrix(prefix + "gate", config.experts, config.hidden,
                                        one_panel=True)
        self.bias = checkpoint.vector(prefix + "gate.e_score_correction_bias", (config.experts,))
        self.down = checkpoint.matrix(prefix + "routed_expert_down_proj",
                                      config.latent, config.hidden)
        self.norm = checkpoint.vector(prefix + "routed_expert_norm.weight", (config.latent,))
        self.up = checkpoint.matrix(prefix + "routed_expert_up_proj", config.hidden, config.latent)
        self.shared = Mlp(checkpoint, [f"{prefix}shared_experts.{part}_proj"
                                       for part in ("gate", "up", "down")],
                          config.hidden, config.shared_width, config, fault)

    def expert(self, number):
        """Expert by number: w1 is the gate, w3 up, w2 down."""
        return Mlp(self.checkpoint, [f"{self.prefix}experts.{number}.{part}"
                                     for part in ("w1", "w3", "w2")],
                   self.config.latent, self.config.expert_width, self.config, self.fault)

    def scores(self, x):
        """sigmoid(W_gate x) for one token x [E]."""
        logits = np.zeros(self.config.experts)
        for panel in self.router.panels():                   # at most one
            logits[panel.rows] = row_sums(panel.values * panel.inputs(x))
        return sigmoid(logits)

    def forward(self, x, on_route):
        """x [T, E], already normed -> [T, E]; on_route(t, picked, margin) is told every choice."""
        users = {}                                           # expert -> [(token, weight)]
        for t in range(x.shape[0]):
            picked, weights, margin = choose_experts(self.scores(x[t]), self.bias,
                                                     self.config, self.fault)
            on_route(t, picked, margin)
            for number, weight in zip(picked, weights):
                users.setdefault(int(number), []).append((t, weight))

        z = self.down.apply(x)
        u = np.zeros_like(z)
        for number in sorted(users):                         # ascending, so the order is fixed
            tokens, weights = (list(column) for column in zip(*users[number]))
            y = self.expert(number).forward(z[tokens])
            if self.fault == "norm-per-expert":
                y = rms_norm(y, self.norm, self.config.eps)
            u[tokens] += np.array(weights)[:, None] * y
        if self.fault != "norm-per-expert":
            u = rms_norm(u, self.norm, self.config.eps)      # of the sum, once
        return self.up.apply(u) + self.shared.forward(x)


# ---- the stack ----------------------------------------------------------------------------------

class Layer:
    """Weights of one layer: two mixes, two norms, a mixer (KDA or MLA) and an MLP."""

    def __init__(self, checkpoint, number, config, fault, mla_eps):
        prefix = f"language_model.model.layers.{number}."
        vector = (config.hidden,)
        self.attention_mix = _mix_weight(checkpoint, prefix + "self_attention_res", config)
        self.mlp_mix = _mix_weight(checkpoint, prefix + "mlp_res", config)
        self.attention_norm = checkpoint.vector(prefix + "input_layernorm.weight", vector)
        self.mlp_norm = checkpoint.vector(prefix + "post_attention_layernorm.weight", vector)
        if number in config.mla_layers:
            self.attention = Mla(checkpoint, prefix + "self_attn.", config, fault, mla_eps)
        else:
            self.attention = Kda(checkpoint, prefix + "self_attn.", config, fault)
        self.is_dense = number < config.dense_layers
        if self.is_dense:
            self.mlp = Mlp(checkpoint, [f"{prefix}mlp.{part}_proj"
                                        for part in ("gate", "up", "down")],
                           config.hidden, config.dense_width, config, fault)
        else:
            self.mlp = LatentMoe(checkpoint, prefix + "block_sparse_moe.", config, fault)


def _mix_weight(checkpoint, stem, config):
    """gain * proj of an attention residual [E]."""
    return (checkpoint.vector(stem + "_norm.weight", (config.hidden,))
            * checkpoint.vector(stem + "_proj.weight", (1, config.hidden))[0])


class State:
    """A sequence so far: what each layer's attention remembers, and what was routed where.

    routes has one entry per token fed: {layer: ([experts ascending], margin)}, MoE layers only.
    The bank of the attention residuals belongs to a token and is not kept.
    """

    def __init__(self, layers):
        self.layers = [layer.attention.new_state() for layer in layers]
        self.routes = []


class Model:
    """The whole text model; weights stay in the checkpoint until they are used."""

    def __init__(self, checkpoint, mla_eps=MLA_EPS):
        """The fault to commit, if any, is the one the checkpoint was opened with."""
        self.config = Config.from_json(checkpoint.config)
        self.fault = check_fault(checkpoint.fault)
        config = self.config
        self.embedding = checkpoint.tensor("language_model.model.embed_tokens.weight")
        if self.embedding.shape != (config.vocab, config.hidden):
            raise ConfigError(f"embed_tokens has shape {list(self.embedding.shape)}")
        self.layers = [Layer(checkpoint, number, config, self.fault, mla_eps)
                       for number in range(config.layers)]
        self.out_mix = _mix_weight(checkpoint, "language_model.model.output_attn_res", config)
        self.norm = checkpoint.vector("language_model.model.norm.weight", (config.hidden,))
        self.head = checkpoint.matrix("language_model.lm_head", config.vocab, config.hidden)

    def new_state(self):
        return State(self.layers)

    def embed(self, ids):
        """Rows of embed_tokens, unscaled."""
        for token in ids:
            if not 0 <= token < self.config.vocab:
                raise ValueError(f"token id {token} is not in 0..{self.config.vocab - 1}")
        return np.concatenate([self.embedding.read_values(token, token + 1) for token in ids])

    def hidden(self, ids, state):
        """Feed tokens; return rmsnorm of the output mix [T, E].

        There is no ordinary residual stream: `current` is the sum of the current block's outputs,
        `bank` the sums of the blocks before it, and every sublayer reads a mix of them all.
        """
        config, fault = self.config, self.fault
        first = len(state.routes)
        state.routes += [{} for _ in ids]
        bank, current = [], self.embed(ids)
        for number, layer in enumerate(self.layers):
            def on_route(t, picked, margin, number=number):
                state.routes[first + t][number] = (picked.tolist(), margin)

            # A boundary layer's attention still sees the sum as the last source; then it is banked.
            x = mix(bank + [current], layer.attention_mix, config.eps, fault) if bank else current
            finished = None
            if number % config.block_size == 0:
                finished = x if fault == "bank-mixed-input" else current
                current = None
                if fault != "bank-after-mix":
                    bank.append(finished)
            a = layer.attention.forward(rms_norm(x, layer.attention_norm, config.eps),
                                        state.layers[number])
            current = a if current is None else current + a

            x = mix(bank + [current], layer.mlp_mix, config.eps, fault)
            if fault == "bank-after-mix" and finished is not None:
                bank.append(finished)
            x = rms_norm(x, layer.mlp_norm, config.eps)
            f = layer.mlp.forward(x) if layer.is_dense else layer.mlp.forward(x, on_route)
            current = current + f
        h = mix(bank + [current], self.out_mix, config.eps, fault)
        return rms_norm(h, self.norm, config.eps)

    def forward(self, ids, state, all_logits=False):
        """Feed tokens; return logits [T, vocab], or [1, vocab] of the last token."""
        hidden = self.hidden(ids, state)
        return self.head.apply(hidden if all_logits else hidden[-1:])
