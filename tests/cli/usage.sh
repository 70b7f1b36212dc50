#!/bin/bash
# Wrong command lines: exit status 2, a sentence that helps, nothing on standard output.
source "$(dirname "$0")/common/lib.sh"

wrong() { # TEXT ARGS...
    local text=$1
    shift
    want 2 "$@"
    says "$text"
    check "nothing on standard output" test ! -s out
}

wrong "a command is missing"
wrong "unknown command 'trian'; did you mean 'train'?" trian
wrong "unknown command 'retreival'; did you mean 'retrieval'?" eval retreival
wrong "a command is missing" eval
wrong "unknown option --batchsize; did you mean --batch-size?" embed --batchsize 3
wrong "--model DIR is missing" embed --out x.safetensors
wrong "--out needs a value" embed --model m --out
wrong "--batch-size 0: must be between" embed --model m --out x --batch-size 0
wrong "--batch-size eight: a whole number is wanted" embed --model m --out x --batch-size eight
wrong "--format pdf: must be one of safetensors|npy|jsonl" embed --model m --out x --format pdf
wrong "--images: the path is empty" embed --model m --out x --images a ''
wrong "--list: the path is empty" filter --images a --texts b --list ''
wrong "'stray' belongs to no option" embed --model m --out x --images a --json stray
wrong "one of --images" embed --model m --out x
wrong "only one of --images" embed --model m --out x --images a --text b
wrong "--masked needs --images or --texts" embed --model m --out x --tokens t --masked
wrong "one of --query-text" search --index x
wrong "--model is missing" search --index x --query-text a
wrong "--lr -1: must be at least 0" train --train-data d --lr -1
wrong "--aug-cfg nonsense=1" train --train-data d --aug-cfg nonsense=1
wrong "--adamp and --opt sgd" train --train-data d --adamp --opt sgd
wrong "--csv-separator ab: one character" train --train-data d --csv-separator ab
wrong "leave nothing to train on" data shapes --out d --val-share 0.6 --test-share 0.6
wrong "--recall-k 0" eval retrieval --images a --texts b --recall-k 0
wrong "--run, or --texts" report --out r.html
wrong "a control needs --control-texts" eval uncertainty --texts a --control-images b
wrong "one PATH at a time" info a b
wrong "PATH is missing" info
wrong "bash, zsh or fish is wanted" completion tcsh
wrong "name one command" manual nothing
wrong "--device: device gpu is not known" info x --device gpu
finish
