"""An act on its way through the gateway: who asks, what is shown, the PREVIEW, the evidence, the answer."""
