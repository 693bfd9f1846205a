"""hiresvlm: batch OCR and questions over documents with a local vision-language model."""

__version__ = "0.1.0"
