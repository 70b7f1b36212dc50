"""ProLIP (Chun et al., ICLR 2025) and its losses in plain PyTorch: the peer of the C library.

Written from the formulas of docs/numerics.md, not from the C code, so that it also checks it.
Names of parameters are those of released files, so `load` is load_state_dict. What the C library
does to be fast is left out on purpose: every layer computes every token, and attention is
materialised (B,H,T,T) by two batched products; `attention="module"` uses nn.MultiheadAttention
instead. Which of the two is faster depends on the case (bench/README.md).
"""
import json
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

import safetensors_io


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class LayerScale(nn.Module):
    def __init__(self, width, value):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), float(value)))

    def forward(self, x):
        return x * self.gamma


class Mlp(nn.Module):
    def __init__(self, width, hidden, act):
        super().__init__()
        self.c_fc = nn.Linear(width, hidden)
        self.act = act
        self.c_proj = nn.Linear(hidden, width)

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class Block(nn.Module):
    """x + LS1 attention(LN1 x), then the same with the MLP."""

    def __init__(self, width, n_heads, mlp_ratio, eps, ls_init, act, attention):
        super().__init__()
        self.n_heads, self.attention = n_heads, attention
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.attn = nn.MultiheadAttention(width, n_heads, batch_first=True)
        self.ls_1 = LayerScale(width, ls_init) if ls_init is not None else nn.Identity()
        self.ln_2 = nn.LayerNorm(width, eps=eps)
        self.mlp = Mlp(width, int(width * mlp_ratio), act)
        self.ls_2 = LayerScale(width, ls_init) if ls_init is not None else nn.Identity()

    def attend(self, x):
        if self.attention == "module":
            return self.attn(x, x, x, need_weights=False)[0]
        b, t, c = x.shape
        head = c // self.n_heads
        qkv = F.linear(x, self.attn.in_proj_weight, self.attn.in_proj_bias)
        q, k, v = qkv.view(b, t, 3, self.n_heads, head).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax((q * head**-0.5) @ k.transpose(-2, -1), dim=-1)
        return self.attn.out_proj((weights @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.ls_1(self.attend(self.ln_1(x)))
        return x + self.ls_2(self.mlp(self.ln_2(x)))


class Transformer(nn.Module):
    def __init__(self, config, n_heads, eps, act, attention):
        super().__init__()
        width = config["width"]
        self.resblocks = nn.ModuleList(
            Block(width, n_heads, config.get("mlp_ratio", 4.0), eps, config.get("ls_init_value"),
                  act, attention) for _ in range(config["layers"]))

    def forward(self, x):
        for block in self.resblocks:
            x = block(x)
        return x


def norm_eps(config):
    return (config.get("norm_kwargs") or {}).get("eps", 1e-5)


class ImageTower(nn.Module):
    """[CLS],[UNC],patches; mean from LN(LN(CLS)), log-variance from LN(UNC)."""

    def __init__(self, config, embed_dim, act, attention):
        super().__init__()
        width, patch, size = config["width"], config["patch_size"], config["image_size"]
        height, wide = size if isinstance(size, list) else (size, size)
        self.has_unc = config.get("embed_unc", False)
        self.n_extra = 2 if self.has_unc else 1
        self.pool_avg = config.get("pool_type", "tok") == "avg"
        scale, eps = width**-0.5, norm_eps(config)
        n_patches = (height // patch) * (wide // patch)
        self.class_embedding = nn.Parameter(scale * torch.randn(width))
        if self.has_unc:
            self.unc_embedding = nn.Parameter(scale * torch.randn(width))
            self.uncertainty_proj = nn.Linear(width, embed_dim)
        n_positions = n_patches + self.n_extra
        self.positional_embedding = nn.Parameter(scale * torch.randn(n_positions, width))
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.ln_pre = nn.Identity() if config.get("no_ln_pre") else nn.LayerNorm(width, eps=eps)
        n_heads = width // config.get("head_width", 64)
        self.transformer = Transformer(config, n_heads, eps, act, attention)
        self.ln_post = nn.LayerNorm(width, eps=eps)
        self.proj = nn.Parameter(scale * torch.randn(width, embed_dim))

    def forward(self, pixels, kept=None):
        """kept: indices of the patches that stay, the same for the whole batch."""
        x = self.conv1(pixels).flatten(2).transpose(1, 2)
        positions = self.positional_embedding
        if kept is not None:
            x = x[:, kept]
            extra = positions[:self.n_extra]
            positions = torch.cat([extra, positions[self.n_extra:][kept]])
        tokens = [self.class_embedding] + ([self.unc_embedding] if self.has_unc else [])
        x = torch.cat([t.expand(x.shape[0], 1, -1) for t in tokens] + [x], dim=1) + positions
        x = self.ln_post(self.transformer(self.ln_pre(x)))
        if not self.has_unc:
            return (x[:, 1:].mean(1) if self.pool_avg else x[:, 0]) @ self.proj, None
        return self.ln_post(x[:, 0]) @ self.proj, self.uncertainty_proj(x[:, 1])


class TextTower(nn.Module):
    """tokens,[UNC],[CLS], no mask; mean from CLS, log-variance from UNC or from the mean."""

    def __init__(self, config, embed_dim, unc_source, act, attention):
        super().__init__()
        width, eps = config["width"], norm_eps(config)
        self.has_unc = config.get("embed_unc", True)
        self.unc_source = unc_source
        self.cls_emb = nn.Parameter(0.01 * torch.randn(width))
        n_positions = config["context_length"] + (2 if self.has_unc else 1)
        if self.has_unc:
            self.unc_emb = nn.Parameter(0.01 * torch.randn(width))
            self.text_uncertainty_projection = nn.Linear(width, embed_dim)
        self.token_embedding = nn.Embedding(config["vocab_size"], width)
        self.positional_embedding = nn.Parameter(0.01 * torch.randn(n_positions, width))
        self.transformer = Transformer(config, config["heads"], eps, act, attention)
        self.ln_final = nn.LayerNorm(width, eps=eps)
        self.proj_bias = config.get("proj_bias", True)
        if self.proj_bias:
            self.text_projection = nn.Linear(width, embed_dim)
        else:
            self.text_projection = nn.Parameter(width**-0.5 * torch.randn(width, embed_dim))

    def forward(self, ids):
        extra = ([self.unc_emb] if self.has_unc else []) + [self.cls_emb]
        x = self.token_embedding(ids)
        x = torch.cat([x] + [t.expand(x.shape[0], 1, -1) for t in extra], dim=1)
        x = self.transformer(x + self.positional_embedding[:x.shape[1]])
        pooled = self.ln_final(x[:, -1])
        mean = self.text_projection(pooled) if self.proj_bias else pooled @ self.text_projection
        if not self.has_unc:
            return mean, None
        source = self.ln_final(x[:, -2]) if self.unc_source == "unc_token" else mean
        return mean, self.text_uncertainty_projection(source)


class ProLIP(nn.Module):
    def __init__(self, config, attention="products"):
        super().__init__()
        act = QuickGELU() if config.get("quick_gelu") else nn.GELU()
        text = config["text_cfg"]
        source = (config.get("text_uncertainty_source") or config.get("text_unc_source") or
                  text.get("text_uncertainty_source") or text.get("text_unc_source") or
                  "projected_mean")
        self.visual = ImageTower(config["vision_cfg"], config["embed_dim"], act, attention)
        self.text = TextTower(text, config["embed_dim"], source, act, attention)
        # A zero or null initial value means that the parameter does not exist.
        scale = config.get("init_logit_scale", math.log(1 / 0.07))
        bias = config.get("init_logit_bias")
        self.logit_scale = nn.Parameter(torch.tensor(float(scale))) if scale else None
        self.logit_bias = nn.Parameter(torch.tensor(float(bias))) if bias else None

    def encode_image(self, pixels, kept=None, normalize=True):
        mean, log_var = self.visual(pixels, kept)
        return (F.normalize(mean, dim=-1) if normalize else mean), log_var

    def encode_text(self, ids, normalize=True):
        mean, log_var = self.text(ids)
        return (F.normalize(mean, dim=-1) if normalize else mean), log_var


def read_config(model_dir):
    with open(os.path.join(model_dir, "config.json"), encoding="utf-8") as f:
        return json.load(f)


def load(model_dir, attention="products"):
    """The model of a directory with config.json and model.safetensors, in float32."""
    model = ProLIP(read_config(model_dir), attention)
    reader = safetensors_io.Reader(os.path.join(model_dir, "model.safetensors"))
    with torch.no_grad():
        own = model.state_dict()
        missing = set(own) ^ set(reader.names())
        if missing:
            raise ValueError(f"{model_dir}: config.json and weights disagree: {sorted(missing)}")
        for name, value in own.items():
            value.copy_(torch.from_numpy(reader.get(name)))
    return model


# ---- losses ----

def inclusion(mean1, log_var1, mean2, log_var2, eps):
    """H(1 in 2) by dimension in the published form, without its cancellations.

    inc(1,2) = -2 l1 - l2 - (log A + eps)/2 - e^eps d^2/(v1 + 2 v2),  A = (v1 + 2 v2)/(2 v1 v2)
    """
    v1, v2 = log_var1.exp(), log_var2.exp()
    a, b = v1 + 2 * v2, v2 + 2 * v1
    delta2 = (mean1 - mean2) ** 2
    return (log_var2 - log_var1 - 0.5 * (a.log() - b.log())
            - math.exp(eps) * delta2 * (1 / a - 1 / b))


def inclusion_loss(one, two, scale, eps):
    loss = F.softplus(-scale * inclusion(*one, *two, eps)).mean()
    return loss if loss.item() <= 1e5 else torch.zeros_like(loss)


def vib_loss(mean, log_var, official=False):
    """Divergence from N(0, I); the released code halves the log-variance by mistake."""
    lv = 0.5 * log_var if official else log_var
    loss = -0.5 * (1 + lv - mean**2 - lv.exp()).mean()
    return loss if loss.item() <= 1e4 else torch.zeros_like(loss)


def ppcl_loss(image, text, scale, bias, negative_only=False):
    """(1/B) sum_ij -log s(y_ij l_ij), l = a (mu.mu - (u_i + u_j)/2) + b."""
    u_image, u_text = image[1].exp().sum(-1), text[1].exp().sum(-1)
    logits = image[0] @ text[0].T - 0.5 * (u_image[:, None] + u_text[None, :])
    logits = scale * logits + (bias if bias is not None else 0)
    labels = -torch.ones_like(logits)
    if not negative_only:
        labels += 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    return -F.logsigmoid(labels * logits).sum() / len(logits)


SMALL_RUN = {"ppcl": 1.0, "inclusion": 1e-4, "masked": 1e-3, "vib": 1e-4, "c": 1000.0, "eps": -10.0}


def losses(image, text, masked_image, masked_text, scale, bias, weights=None, vib_official=False):
    """Weighted terms by name; pairs (mean, log_var), masked rows belong to the first rows."""
    w = {**SMALL_RUN, **(weights or {})}
    terms = {}
    if w["ppcl"] > 0:
        terms["ppcl"] = w["ppcl"] * ppcl_loss(image, text, scale, bias)
    if w["inclusion"] > 0:
        terms["inclusion"] = w["inclusion"] * inclusion_loss(image, text, w["c"], w["eps"])
    if w["masked"] > 0:
        for name, full, part in (("img_inclusion", image, masked_image),
                                 ("txt_inclusion", text, masked_text)):
            first = tuple(x[:len(part[0])] for x in full)
            terms[name] = w["masked"] * inclusion_loss(first, part, w["c"], w["eps"])
    if w["vib"] > 0:
        terms["vib"] = w["vib"] * (vib_loss(*image, vib_official) + vib_loss(*text, vib_official))
    return terms


# ---- one step ----

def is_decayed(name, parameter):
    """open_clip's rule: matrices whose name holds none of these."""
    return parameter.ndim >= 2 and not any(s in name for s in ("bn", "ln", "bias", "logit_scale"))


def make_adamw(model, lr=1e-3, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-6):
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if is_decayed(n, p)], "weight_decay": weight_decay},
              {"params": [p for n, p in named if not is_decayed(n, p)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)


def train_step(model, optimizer, batch, clip=1.0, weights=None):
    """Forward with the masked pass, losses, backward, clipping, update; returns the terms."""
    pixels, ids, masked_ids, kept = batch
    n = len(masked_ids)
    terms = losses(model.encode_image(pixels), model.encode_text(ids),
                   model.encode_image(pixels[:n], kept), model.encode_text(masked_ids),
                   model.logit_scale.exp(), model.logit_bias, weights)
    total = sum(terms.values())
    optimizer.zero_grad(set_to_none=True)
    total.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip) if clip > 0 else None
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    values = {k: v.item() for k, v in terms.items()}
    values["loss"] = total.item()
    values["grad_norm"] = float(norm) if norm is not None else float("nan")
    return values
