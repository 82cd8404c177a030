"""PBPFL: the server masks the model, clients send gradients of the masked model, and the server removes the mask."""
