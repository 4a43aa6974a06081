"""Adapters to other libraries, each an optional extra: import the module that is named after the library."""
