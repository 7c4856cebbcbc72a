"""Distillation of small draft models."""
