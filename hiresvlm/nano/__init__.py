"""hiresvlm-nano: a small vision-language model, trained from scratch by the code in this package.

It is of the same class as a production model (`Qwen2_5_VLForConditionalGeneration`), so that every line of
the VLM path can be tested by what it reads, where no model hub can be reached.
"""
