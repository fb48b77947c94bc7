# SPDX-License-Identifier: Apache-2.0
"""Classic misreadings of the model report, each of which the reference can commit on purpose.

A checkpoint that is meant to prove an implementation right must give different logits under each
of them; otherwise a program with that mistake would pass.  At most one fault is active at a time.
"""

FAULTS = {
    # How the bytes of a matrix are read (checkpoint.py).
    "nibble-order": "MXFP4: the high nibble of a byte is the even column",
    "scale-index": "MXFP4: a group of 32 takes the scale of the next group of its row"
                   " (of the next row where a row has one group)",
    "transposed-square": "every square matrix is used transposed; if the checkpoint has none,"
                         " the flat buffer of each self_attn.o_proj is read as [in, out]",
    # KDA.
    "alog-padding": "A_log is indexed by channel, (head*D + d) mod its length, padding included",
    "dt-bias-after": "decay = lb*sigmoid(exp(A)*z + dt_bias): dt_bias outside the exp(A) factor",
    "decay-after-read": "the delta rule reads the state before the decay is applied",
    "read-before-write": "the output reads the decayed state before the rank-1 write",
    "tap-order": "short convolution: tap 0 multiplies the current token",
    "no-silu": "short convolution without the SiLU that follows it",
    "l2norm-mean": "q and k are divided by sqrt(mean + eps), not sqrt(sum + eps)",
    "l2norm-eps": "q and k are normalised with eps 1e-5, not 1e-6",
    "gate-before-norm": "the KDA output gate is applied before o_norm",
    # MLA.
    "shared-nope-order": "a query head is split as shared | nope",
    "scale-nope-only": "scores are scaled by dn^-1/2, not (dn+dr)^-1/2",
    "mla-eps": "the two MLA low-rank norms use eps 1e-5, not 1e-6",
    "shared-key-normed": "the shared key block is RMS-normalised (gain 1) before it is cached",
    # Attention residuals.
    "bank-after-mix": "a boundary layer banks its sum only after its MLP mix, which misses it",
    "bank-mixed-input": "a boundary layer banks the mixed attention input, not the sum itself",
    "mix-normalised-sources": "the mix adds up the RMS-normalised sources, not the raw ones",
    # Router and experts.
    "bias-in-weight": "the routing weights are taken from the biased scores",
    "bias-ignored": "the selection ignores e_score_correction_bias",
    "tie-higher-index": "equal scores: the higher expert index wins",
    "no-renormalise": "routing weights are not divided by their sum"
                      " (cancelled by routed_expert_norm: moves logits by about 1e-7 only)",
    "norm-per-expert": "routed_expert_norm is applied to each expert's output, not to the sum",
    "sigmoid-capped-gate": "SiTU: the sigmoid takes the tanh-capped gate",
}


def check_fault(name):
    """Return name if it is None or a known fault, else raise ValueError."""
    if name is not None and name not in FAULTS:
        raise ValueError(f"unknown fault '{name}'; --list-faults names them")
    return name
