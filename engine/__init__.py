"""Slipstream's engine: loads models, drafts, verifies and chats, without a screen."""

import os

# With a package named "kernels" installed, transformers would fetch code from the hub.
os.environ["USE_HUB_KERNELS"] = "0"
