/*
 * The script for bash. It reads the line itself: bash would break words at "=" and ":", which
 * addresses and
 * --name=value hold; what it replaces is then only the part after the last break.
 */
#include "completion.h"

static const char head[] =
    "# Completion of skrullctl for bash, as \"skrullctl completion bash\" prints it.\n\n";

static const char body[] =
    "_skrullctl_reply() { # KIND [WORD...]: what may stand at $cur\n"
    "    local kind=$1 before=\n"
    "    shift\n"
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$cur\") ;;\n"
    "    list)\n"
    "        [[ $cur == *,* ]] && before=${cur%,*},\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$*\" -- \"${cur##*,}\")\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        ;;\n"
    "    files | folders)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        [[ $kind == files ]] && kind=-f || kind=-d\n"
    "        mapfile -t COMPREPLY < <(compgen \"$kind\" -- \"$cur\")\n"
    "        ;;\n"
    "    jobs)\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(timeout 2 skrullctl \"${server[@]}\" job list "
    "-o csv 2>/dev/null |\n"
    "            tail -n +2 | cut -d, -f1)\" -- \"$cur\")\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_skrullctl() {\n"
    "    local cur verb= option= word i\n"
    "    local -a words server=()\n"
    "    COMPREPLY=()\n"
    "    read -ra words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
    "    [[ ${COMP_LINE:COMP_POINT-1:1} == [[:space:]] ]] && words+=(\"\")\n"
    "    cur=${words[-1]}\n"
    "    for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
    "        word=${words[i]}\n"
    "        if [[ $option ]]; then\n"
    "            [[ $option == --server ]] && server=(--server \"$word\")\n"
    "            option=\n"
    "        elif [[ $word == --*=* ]]; then\n"
    "            [[ $word == --server=* ]] && server=(\"$word\")\n"
    "        elif [[ $word == -* ]]; then\n"
    "            _skrullctl_values \"$word\" >/dev/null && option=$word\n"
    "        elif [[ ! $verb || ($verb != *' '* && $(_skrullctl_verbs \"$verb\")) ]]; then\n"
    "            verb+=${verb:+ }$word\n"
    "        fi\n"
    "    done\n"
    "    if [[ ! $option && $cur == --*=* ]]; then\n"
    "        option=${cur%%=*} cur=${cur#*=}\n"
    "    fi\n"
    "    if [[ $option ]]; then\n"
    "        _skrullctl_reply $(_skrullctl_values \"$option\")\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _skrullctl_reply words $(_skrullctl_options \"$verb\")\n"
    "    elif [[ ! $verb || ($verb != *' '* && $(_skrullctl_verbs \"$verb\")) ]]; then\n"
    "        _skrullctl_reply words $(_skrullctl_verbs \"$verb\")\n"
    "    else\n"
    "        _skrullctl_reply $(_skrullctl_operands \"$verb\")\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _skrullctl skrullctl\n";

void completion_write_bash(FILE *out)
{
    (void)fputs(head, out);
    completion_write_tables(out);
    (void)fputs(body, out);
}
