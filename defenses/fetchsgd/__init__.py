"""FetchSGD (Rothchild et al. 2020): clients send sketches of gradients; the server keeps momentum and error in one."""
