"""The second engine: whole series of a `ParticleFilter` in one compiled loop, for models that name it as their `engine`."""
