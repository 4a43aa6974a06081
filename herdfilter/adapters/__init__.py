"""Models and filters of other libraries: filterpy, particles and Stone Soup, a module each, loaded when it is imported."""
