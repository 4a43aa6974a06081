"""Models and filters of other libraries, each an optional extra: import the module of the library that is meant."""
