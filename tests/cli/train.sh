#!/bin/bash
# train: a short run, its files, Ctrl-C, resume, a second process, bad data.
source "$(dirname "$0")/common/lib.sh"
make_small
common=(--model tiny --override "$small_config" --batch-size 8 --logs logs --workers 1 --seed 3
    --threads 2 --tokenizer tok.json --save-every-n-steps 2)

want 0 train --train-data shapes/train --val-data shapes/val "${common[@]}" --name whole \
    --max-steps 12 --json -q
prints '"step": 12'
for file in params.txt out.log results.jsonl checkpoints/latest/model.safetensors; do
    check "$file is there" test -e "logs/whole/$file"
done
want 0 info logs/whole/checkpoints/latest
want 1 train --train-data shapes/train "${common[@]}" --name whole --max-steps 12
says "whole"

# Ctrl-C: a checkpoint, exit 130; then the rest, with the same bits
"$PENUMBRA" train --train-data shapes/train --val-data shapes/val "${common[@]}" --name cut \
    --max-steps 12 -q >out 2>err </dev/null &
pid=$!
for _ in $(seq 1000); do
    [ -s logs/cut/results.jsonl ] && break
    sleep 0.02
done
"$PENUMBRA" train --train-data shapes/train "${common[@]}" --name cut --max-steps 12 \
    --resume latest >out2 2>err2 </dev/null
busy=$?
kill -INT $pid 2>/dev/null
wait $pid
status=$?
if [ "$status" -eq 130 ]; then
    says "resume"
    check "a second process is refused" test "$busy" -eq 1
    want 0 train --train-data shapes/train --val-data shapes/val "${common[@]}" --name cut \
        --max-steps 12 --resume latest -q
fi
check "interrupted or done" test "$status" -eq 0
check "resumed weights are the same" cmp -s logs/whole/checkpoints/latest/model.safetensors \
    logs/cut/checkpoints/latest/model.safetensors

# a new model reads the log-variance of captions from the projected mean; where the widths of
# --override rule that out, from [UNC], and says so
check "said in out.log" grep -q "Log-variance of captions from: unc_token" logs/whole/out.log
want 0 train --dataset-type synthetic --train-num-samples 16 --batch-size 8 --logs logs \
    --tokenizer tok.json --max-steps 1 --name plain -q
check "said in out.log" grep -q "Log-variance of captions from: projected_mean" logs/plain/out.log
want 0 info logs/plain/checkpoints/latest
prints "projected_mean"

# flags of open_clip and ProLIP beyond the loop
want 0 train --dataset-type synthetic --train-num-samples 16 "${common[@]}" --name flags \
    --max-steps 2 --grad_checkpointing --local-loss --gather-with-grad --dataset-resampled \
    --vib-form official --vib-limit 100 --inclusion-limit 100 --report-to tensorboard
says "change nothing in one process"
check "an event file is there" compgen -G "logs/flags/tensorboard/events.out.tfevents.*"
check "params name the form" grep -q "vib_official: true" logs/flags/params.txt
want 2 train "${common[@]}" --name z
says "--train-data"
for precision in amp bf16 fp16 pure_bf16; do
    want 2 train --train-data shapes/train --name z --precision $precision
    says "training runs in fp32 or amp_bf16"
done
want 0 train --train-data shapes/train "${common[@]}" --name rounded --max-steps 2 --precision amp_bfloat16
check "the arithmetic is recorded" grep -qx "precision: amp_bf16" logs/rounded/params.txt
want 2 train --train-data shapes/train --name z --report-to wandb
says "tensorboard"
says "results.jsonl"
check "nothing was started" test ! -e logs/z

# words, boxes and classes of PCME
want 2 train --train-data shapes/train --name z --aug-cfg re_mode=blue
says "re_mode=pixel|const"
want 2 train --train-data shapes/train "${common[@]}" --name z --word-drop-removes
says "it goes with --word-drop"
want 1 train --train-data shapes/train "${common[@]}" --name z --word-vectors tok.json
says "no embedding of words"
mkdir -p birds/1.wren birds/2.owl pictures
tar -xf "$(find shapes/train -name '*.tar' | head -1)" -C pictures
i=0
for picture in pictures/*.png; do
    mv "$picture" "pictures/$i.png"
    i=$((i + 1))
done
for i in 0 1 2; do
    for class in 1.wren 2.owl; do
        cp pictures/$i.png birds/$class/$i.png
        echo "the bird $i of $class" >birds/$class/$i.txt
    done
done
sentence='"split": "restval", "sentences": [{"raw": "a bird"}]'
printf '{"images": [{"filename": "0.png", %s}, {"filename": "1.png", %s}, {"filename": "2.png", %s}]}' \
    "$sentence" "$sentence" "$sentence" >dataset_coco.json
pcme=(--objective pcme --force-image-size 32 --logs logs --threads 2 --epochs 1 --warmup 0 -q)
want 0 train --train-data birds --batch-by-class --name birds --word-drop 0.1 \
    --aug-cfg re_prob=0.2 --aug-cfg re_mode=const "${pcme[@]}" --json
prints '"n_steps": 3'
check "a batch of the classes" grep -q "^batch_size: 2$" logs/birds/params.txt
check "boxes of 0" grep -q "^aug_re_const: true$" logs/birds/params.txt
want 0 train --train-data 'dataset_coco.json#images=pictures' --name coco --batch-size 3 "${pcme[@]}"
check "the recipe's batch is given up for the one asked for" grep -q "^batch_size: 3$" \
    logs/coco/params.txt
want 1 train --train-data 'dataset_coco.json#split=dev' --name z "${pcme[@]}"
says "is in the split 'dev'"

want 1 train --train-data nowhere "${common[@]}" --name x --max-steps 2
says "nowhere"
mkdir empty
want 1 train --train-data empty "${common[@]}" --name y --max-steps 2
says "empty"
finish
