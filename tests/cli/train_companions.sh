#!/bin/bash
# train: an option that is of use with another one alone is refused by both names, and asks nothing
# where it is of use, off, a default, a recipe's, or of a run that goes on.
source "$(dirname "$0")/common/lib.sh"
make_small
train=(train --train-data shapes/train --model tiny --override "$small_config" --batch-size 4
    --max-steps 1 --logs l --workers 0 --threads 1 --tokenizer tok.json)

refused() { # OPTION COMPANION WORDS...
    local option=$1 with=$2
    shift 2
    want 2 "${train[@]}" --name z "$@"
    says "$option changes nothing here: it goes with "
    says "$with"
}
refused --lr-gamma "--lr-scheduler multistep" --lr-gamma 0.5
refused --lr-gamma "--lr-scheduler multistep" --lr_gamma=0.1 # a default that somebody asks for
for word in "--epochs-cooldown 1" "--lr-cooldown-end 0.1" "--lr-cooldown-power 2"; do
    refused "${word% *}" "--lr-scheduler const-cooldown" $word
done
refused --trunk-lr-ratio --head-epochs --trunk-lr-ratio 0.5
refused --samples --pcme-lambda --samples 3
refused --samples --uniformity-lambda --samples 3 --pcme-kl-beta 1
for word in "--triplet-margin 0.1" "--triplet-negatives hardest" "--triplet-form mean" "--triplet-warmup 5"; do
    refused "${word% *}" --triplet-lambda $word
done
refused --triplet-warmup "--triplet-negatives hardest" --triplet-lambda 1 --triplet-warmup 5
refused --pcme-kl-form --pcme-kl-beta --pcme-kl-form published
refused --uniformity-form --uniformity-lambda --uniformity-form published
refused --mmd-form --mmd-lambda --mmd-form published
refused --replace-token "--text-mask replace" --replace-token 2
refused --replace-token --inclusion-alpha-occ --replace-token 2 --text-mask replace --inclusion-alpha-occ 0
refused --word-drop-removes --word-drop --word-drop-removes
refused --mix-alpha --mix-share --mix-alpha 1
for word in "--val-every-n-steps 5" "--val-level 1" "--best-by val_loss" "--save-best-unc"; do
    refused "${word% *}" --val-data $word
done
refused --lock-image-unlocked-groups --lock-image --lock-image-unlocked-groups 1
refused --lock-text-unlocked-layers --lock-text --lock-text-unlocked-layers 1 --lock-image
refused --tokenizer-vocab-size --tokenizer --tokenizer-vocab-size 300
refused --tokenizer-kind --tokenizer --tokenizer-kind word
for word in "--init-logit-scale 5" "--init-logit-bias -3" "--init-unc-bias -5"; do
    want 2 train --train-data shapes/train --model model --logs l --name z $word
    says "${word% *} changes nothing here: it goes with a model that starts anew"
done
want 2 train --train-data shapes/train --pretrained model --logs l --name z --init-unc-bias -5
says "--init-unc-bias changes nothing here"
check "nothing was begun" test ! -e l

# of use, or off
want 0 "${train[@]}" --name a --lr-scheduler multistep --lr-milestones 1 --lr-gamma 0.5 --val-every-n-steps 0 \
    --epochs-cooldown 0 --word-drop-removes=false --triplet-warmup 0 --init-logit-scale 5 -q
want 0 "${train[@]}" --name b --lr-scheduler const-cooldown --epochs-cooldown 1 --lr-cooldown-end 1e-5 --val-data shapes/val \
    --val-level 1 --save-best-unc --best-by i2t_r1 --triplet-lambda 1 --triplet-margin 0.3 -q

# settings and recipes are for trainings of several kinds
PENUMBRA_SAMPLES=3 PENUMBRA_LR_GAMMA=0.5 want 0 "${train[@]}" --name env -q
want 0 "${train[@]}" --name recipe --recipe pcme-cub --objective prolip --lr-scheduler const --word-drop 0 \
    --batch-by-class=false --head-epochs 0 --pcme-lambda 0 --pcme-kl-beta 0 --uniformity-lambda 0 --ppcl-lambda 1 -q

# a run that was begun with a word of no use goes on with it
sed -i 's/"lr_gamma":\( *\)"[^"]*"/"lr_gamma":\1"0.25"/' l/b/checkpoints/latest/state.json
want 0 "${train[@]}" --name b --lr-scheduler const-cooldown --epochs-cooldown 1 --lr-cooldown-end 1e-5 --val-data shapes/val \
    --val-level 1 --save-best-unc --best-by i2t_r1 --triplet-lambda 1 --triplet-margin 0.3 --lr-gamma 0.25 \
    --resume latest -q
want 2 "${train[@]}" --name b --save-best-unc --resume latest
says "--save-best-unc changes nothing here: it goes with --val-data"
finish
