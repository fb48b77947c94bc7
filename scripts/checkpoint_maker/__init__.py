# SPDX-License-Identifier: Apache-2.0
"""Parts of make_checkpoint.py: synthetic Kimi K3 checkpoints in the released format."""
