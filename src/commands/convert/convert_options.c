/* penumbra convert: a model folder under the names of another layout.
 *
 * Options only; the work is in src/commands/convert/convert.c and src/models/keys/key_export.c. */
#include "commands/commands.h"
#include "commands/convert/convert.h"

#define AT(field) PNB__FIELD(pnb__convert_opts, field)
static const pnb__option options[] = {
    PNB__ROW_REST("dir", AT(dir), "DIR",
                  "Model folder, or hf-hub:ORG/NAME from the local cache, or shipped:tiny",
                  .required = true),
    PNB__ROW_CHOICE("to", AT(to), "LAYOUT", "open_clip|hf|prolip|pcme|pcmepp",
                    "Layout to write; required but with --lora"),
    PNB__ROW_FILE(
        "lora", AT(lora), "DIR",
        "Merge a LoRA adapter (a checkpoint of `train --lora-rank`) into the model it was "
        "trained on, in the model's own layout"),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder to write; it must not hold a model", .letter = 'o',
                  .required = true, .writes = "/"),
    PNB__ROW_INT("unc-layers", AT(n_unc_layers), "N",
                 "--to pcmepp: blocks of the second path, as its released models 2, its "
                 "configuration for COCO 1",
                 PNB__RANGE(1, 64)),
    PNB__ROW_INT("force-image-size", AT(image_size), "PIXELS",
                 "Another picture size: position embeddings are resized (bicubic, antialiased)",
                 PNB__RANGE(1, 16384)),
    PNB__ROW_INT(
        "force-context-length", AT(context_length), "N",
        "Another caption length: position embeddings are stretched, above 127 by LongProLIP's "
        "rule",
        PNB__RANGE(1, 65536)),
};
#undef AT

const pnb__command pnb__cmd_convert = {
    .name = "convert",
    .summary = "write a model in another layout",
    .about =
        "Between open_clip and Hugging Face no number changes: bits and types of the weights are "
        "copied, and back again they are the same. What the other layout cannot describe is "
        "refused by name. --to prolip makes the start of a fine-tuning from CLIP or SigLIP: "
        "weights with a counterpart are taken, the parts that give uncertainty are drawn from "
        "--seed; a caption's log-variance is read from its projected mean, as in released models, "
        "or from [UNC] where the text tower is not as wide as the embedding. --to pcmepp makes the "
        "start of PCME++'s training from CLIP in the same way. --to pcme writes PCME, VSE and PVSE "
        "models with the keys of PCME's released files, which its code loads: "
        "img_enc.*, txt_enc.*, torch's counts of batches and, in front of them, criterion.*. "
        "Tokenizer and preprocessor files are carried over.\n\n"
        "--lora ADAPTER makes a model of an adapter and its base: W + (alpha / r) B A of every "
        "matrix that was adapted, and the heads that trained. Another base than the adapter's is "
        "refused. The files beside the weights are the adapter's.",
    .examples = "penumbra convert clip-vit-base-patch32 --to open_clip --out clip-b32\n"
                "penumbra convert hf-hub:openai/clip-vit-base-patch16 --to prolip --out start\n"
                "penumbra convert ViT-B-32-openai --to pcmepp --out start\n"
                "penumbra convert clip-b16 --lora logs/tuned/checkpoints/latest --out tuned\n"
                "penumbra convert logs/pcme/checkpoints/latest --to pcme --out for-pcme",
    PNB__RUNS(options, pnb__convert_opts, pnb__convert_model)};
