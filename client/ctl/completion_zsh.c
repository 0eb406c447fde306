/* The script for zsh, for a folder of $fpath; sourcing it works too. */
#include "completion.h"

static const char head[] =
    "#compdef skrullctl\n"
    "# Completion of skrullctl for zsh, as \"skrullctl completion zsh\" prints it.\n\n";

static const char body[] =
    "_skrullctl_reply() { # KIND [WORD...]\n"
    "    local kind=$1\n"
    "    [[ $# -gt 0 ]] && shift\n"
    "    case $kind in\n"
    "    words) compadd -- \"$@\" ;;\n"
    "    list)\n"
    "        compset -P '*,'\n"
    "        compadd -q -S , -- \"$@\"\n"
    "        ;;\n"
    "    files) _files ;;\n"
    "    folders) _files -/ ;;\n"
    "    jobs)\n"
    "        compadd -- ${(f)\"$(timeout 2 skrullctl \"${server[@]}\" job list -o csv 2>/dev/null "
    "|\n"
    "            tail -n +2 | cut -d, -f1)\"}\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_skrullctl() {\n"
    "    local verb= option= word i\n"
    "    local -a server\n"
    "    for ((i = 2; i < CURRENT; i++)); do\n"
    "        word=$words[i]\n"
    "        if [[ -n $option ]]; then\n"
    "            [[ $option == --server ]] && server=(--server $word)\n"
    "            option=\n"
    "        elif [[ $word == --*=* ]]; then\n"
    "            [[ $word == --server=* ]] && server=($word)\n"
    "        elif [[ $word == -* ]]; then\n"
    "            _skrullctl_values $word >/dev/null && option=$word\n"
    "        elif [[ -z $verb || ($verb != *' '* && -n $(_skrullctl_verbs $verb)) ]]; then\n"
    "            verb+=${verb:+ }$word\n"
    "        fi\n"
    "    done\n"
    "    if [[ -z $option && $PREFIX == --*=* ]]; then\n"
    "        option=${PREFIX%%=*}\n"
    "        compset -P '*='\n"
    "    fi\n"
    "    if [[ -n $option ]]; then\n"
    "        _skrullctl_reply $(_skrullctl_values $option)\n"
    "    elif [[ $PREFIX == -* ]]; then\n"
    "        _skrullctl_reply words $(_skrullctl_options $verb)\n"
    "    elif [[ -z $verb || ($verb != *' '* && -n $(_skrullctl_verbs $verb)) ]]; then\n"
    "        _skrullctl_reply words $(_skrullctl_verbs \"$verb\")\n"
    "    else\n"
    "        _skrullctl_reply $(_skrullctl_operands $verb)\n"
    "    fi\n"
    "}\n"
    "\n"
    "if [[ $funcstack[1] == _skrullctl ]]; then\n"
    "    _skrullctl \"$@\"\n"
    "else\n"
    "    compdef _skrullctl skrullctl\n"
    "fi\n";

void completion_write_zsh(FILE *out)
{
    (void)fputs(head, out);
    completion_write_tables(out);
    (void)fputs(body, out);
}
