#!/bin/sh
# nvcc, without --expt-extended-lambda for the files that do without:
#
#     sh nvcc.sh OUTPUT nvcc ARGUMENTS...
#
# With that flag cuda_runtime.h includes <functional>, and nvcc's three passes parse most of the standard library: a small
# file takes two thirds more time. So the flag is left out at first. A file that does not compile then, because it has
# such a lambda or uses what <functional> happened to bring, is compiled with it, and from then on at once: the file
# OUTPUT.lambda remembers. What is printed is of the last attempt alone.
flag=--expt-extended-lambda
output=$1
shift
for word do
    shift
    [ "$word" = "$flag" ] || set -- "$@" "$word"
done
if [ ! -e "$output.lambda" ]; then
    said=$("$@" 2>&1)
    status=$?
    # Errors in the source, not those of ptxas or of the machine.
    case "$status $said" in
    [1-9]*"): error"* | [1-9]*": error:"*) ;;
    *)
        [ -z "$said" ] || printf '%s\n' "$said"
        exit "$status"
        ;;
    esac
fi
"$@" "$flag" || exit
: >"$output.lambda"
