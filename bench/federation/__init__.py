"""The federation: composes a protocol from its parts and plays its rounds."""
