"""D-SGD (Lian et al. 2017) and self-centered clipping (He, Karimireddy and Jaggi 2022): training without a server."""
