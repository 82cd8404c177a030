"""Parts of the property attack; this folder contains no attack."""
