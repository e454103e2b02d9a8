"""GGUF files as transformers models: configuration, weights, tokenizer.

Knows llama.cpp's names for settings and tensors, and what its converter does to weights. Does not
know the container (library/gguf.py), nor when, where or in which precision a model is wanted. What
a file says and this package cannot carry over is refused: a setting left out would still load, and
the answers would be a little wrong.

Source of every rule: conversion and model code of ggml-org/llama.cpp.
"""
