"""The figures of the documentation, a file for each group; ``python docs/make_images.py`` draws them."""
