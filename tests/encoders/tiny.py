"""Small models of random weights, saved in the hub's own layout: what a loader must find, without a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

WORDS = "owls hunt mice at night the sun is a star of gas and dust what do they eat birds fly by day".split()
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def tokenizer(special: list[str], first: str, last: str, unknown: str, pad: str, mask: str) -> PreTrainedTokenizerFast:
    places = {word: place for place, word in enumerate([*special, *WORDS])}
    made = Tokenizer(models.WordLevel(places, unk_token=unknown))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(first, places[first]), (last, places[last])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        cls_token=first,
        sep_token=last,
        unk_token=unknown,
        pad_token=pad,
        mask_token=mask,
        model_max_length=64,
    )


def bert(folder: Path, architecture: str, **options: Any) -> Path:
    """A BERT with some head, or none ("BertModel")."""
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(BERT) + len(WORDS), max_position_embeddings=64, initializer_range=0.5, **SIZE, **options
    )
    getattr(transformers, architecture)(config).save_pretrained(folder)
    tokenizer(BERT, "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]").save_pretrained(folder)
    return folder


def bge_m3(folder: Path) -> Path:
    torch.manual_seed(11)
    config = transformers.XLMRobertaConfig(
        vocab_size=len(ROBERTA) + len(WORDS), max_position_embeddings=66, initializer_range=0.5, pad_token_id=1, **SIZE
    )
    transformers.XLMRobertaModel(config).save_pretrained(folder)
    tokenizer(ROBERTA, "<s>", "</s>", "<unk>", "<pad>", "<mask>").save_pretrained(folder)
    weights = torch.nn.Linear(32, 1)
    torch.nn.init.constant_(weights.bias, 0.4)  # most words weigh something, some nothing
    torch.save(weights.state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(32, 32).state_dict(), folder / "colbert_linear.pt")
    return folder
