# SPDX-License-Identifier: Apache-2.0
"""Chat templates of rerankers for make_head_fixtures.py, and what transformers renders of them."""

OFFICIAL = """[CLS] system
Is it the road?[SEP]
<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first | \
default("Find the harbour") }}
<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first \
}}[SEP]
[MASK] the

"""
LOOP = """{%- for message in messages -%}
  {%- if message.role == 'system' %}[CLS]{{ message.content[0].text }}
  {% elif message['role'] == 'query' -%}
    Which boat: {{ message['content'][0]['text'] }}
  {%- else %}[SEP]{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}
{% endfor %}
{{ "[SEP] the tea [MASK]\n" }}"""


def rendered(source, prompt, structured, query="QQ", document="DD"):
    """What transformers renders as "rendered"; the exception's name as "error" where it raises."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def message(role, text):
        return {"role": role, "content": [{"type": "text", "text": text}] if structured else text}
    messages = [message("query", query), message("document", document)]
    if prompt:
        messages.insert(0, message("system", prompt))
    try:
        return {"rendered": render_jinja_template([messages], chat_template=source)[0][0]}
    except Exception as error:
        return {"error": type(error).__name__}


# Templates of the part of Jinja that encore has.
KNOWN = [
    OFFICIAL, LOOP, "{{ messages[0].content }}|{{ messages[-1]['content'] }}\n\n",
    "a\r\nb\rc {{messages[-2].content}}{{ messages[-1].content }}\n",
    "  {% if messages[0].role == 'system' %}  \n S {{ messages[0].content }} \n  {% endif %}\n"
    "{% for m in messages %}\n {{ loop.index }} \n{% endfor %}",
    "{% for m in messages %}{% if not loop.first %}, {% endif %}{{ m.role ~ ': ' + m.content }}"
    "{%- if loop.last %}.{% endif %}{% endfor %}",
    "{% for m in messages %}{% if m.role != 'system' and m['role'] is defined %}{{ m.content }} "
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<x>{% endif %}",
    "{# a comment #}\n  {#- another -#}  {% set q = messages | selectattr('role', 'equalto', "
    "'query') | list %}{{ q[0].content }} {% set d = (messages | rejectattr('role', 'ne', "
    "'document') | list | last).content %}{{ d }}",
    "{{ 'it\\'s \\n' }}{{ (messages | map(attribute='content') | list)[-1] }}{{ "
    "messages[-2].content if messages[-2].role == 'query' else 'none' }}",
    "{{ nothing }}{{ messages[0].name | default('nobody') }}{% for m in messages %}{{ m.content }}"
    "{% endfor %}\n",
    "{%- set x = 'a' -%} {{ x }} {%- for m in messages %}{% set x = m.content %} {{ x }} "
    "{%- endfor %} {{ x }}",
    "{{ '  b ' | trim }}{% if 'a' == 'a' or false %}{{ messages[-1].content }}{% endif -%}\n\n "
    "x{{ messages[-2].content }}",
    # Members of loop.
    "{% for m in messages %}{{ m.content }}{% if loop.index == loop.length %}END{% endif %}"
    "{% if loop.revindex == 2 %}, {% endif %}{% if loop.revindex0 == 0 %}.{% endif %}{% endfor %}",
    # The newline behind a block, and blanks before it.
    "{% if true %}a{% endif -%}\n b{{ messages[-2].content }}{# c #}\n{{ messages[-1].content }}",
    "q\n\x1c {% if true %}x{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}",
    "q\n\xe9: {% if true %}x{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}",
    "q\xe9 {% if true %}x{% endif %}{{ messages[-2].content }}\xa0{{ messages[-1].content }}",
    # Conditions in a loop's head, within brackets.
    "{% for m in (messages if true else none) %}{{ m.content }}{% endfor %}",
    # Names of globals that the template gives a value.
    "{% set namespace = 'n' %}{{ namespace }}{% for self in messages %}{{ self.content }}"
    "{% endfor %}",
    "{{ messages | map(attribute = 'content') | list | last }}{{ messages[-2].content }}",
]

ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"
# What encore has not, or leaves to what a text to come is.
OTHER = [
    "{{ bos_token }}{{ messages }}", "{% macro f() %}{% endmacro %}", "{{ messages[0].content",
    "{% for m in messages %}{{ m.content | upper }}{% endfor %}", "{{ raise_exception('no') }}",
    "{% for m in messages %}{% if m.content == 'QQ' %}a{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% if m.content %}{{ m.content }}{% endif %}{% endfor %}",
    "{% if messages[0].role == 'user' %}{{ messages[0].content }}{% endif %}",
    "{% set q = messages | map(attribute='content') %}{{ q | first }}{{ q | list | last }}",
    "{{ (messages | map(attribute='content'))[0] }}{{ messages[0].content }}{{ messages[1].content "
    "}}", "{{ messages | map(attribute='content') | last }}",
    "{% if messages | selectattr('role', 'eq', 'user') %}{{ messages[0].content }}{% endif %}",
    "{{ messages[0:2] }}", "{% for m in messages %}{{ m.content | trim }}{% endfor %}",
    *(ALL + "{% for m in messages %}{% if loop." + name + " %}x{% endif %}{% endfor %}"
      for name in ("nextitem", "previtem", "depth", "depth0", "changed", "nothing")),
    *("{% if " + name + " is defined %}A{% else %}B{% endif %}" + ALL
      for name in ("range", "dict", "lipsum", "cycler", "joiner", "namespace", "raise_exception",
                   "strftime_now", "self")),
    *("{% if messages[0]." + name + " %}A{% else %}B{% endif %}" + ALL
      for name in ("copy", "fromkeys", "get", "items", "keys", "values")),
    "{% if true %}" + ALL + "{% endif +%}\nx", ALL + "{# c +#}\nx", ALL + "{# c -#}\n{#+ c #}x",
    "{% for m in messages %}{{ m.content }}{% endfor +%}\nx", "{% set a = 'b' +%}\n" + ALL,
    "{% if true +%}\nx{% endif %}" + ALL, "{% if false %}{% else +%}\nx{% endif %}" + ALL,
    "{% if false %}a{% else if true %}b{% endif %}" + ALL, "{% if true %}b{% endif true %}" + ALL,
    "{% for m in messages %}{{ m.content }}{% endfor messages %}",
    "{% 'if' true %}{% endif %}" + ALL,
    "{{ messages | map('content') | list | first }}{{ messages[-1].content }}",
    "{{ messages | map(attribute='role.x') | list | first }}" + ALL,
    "{{ messages | map(attribute='0') | list | first }}" + ALL,
    "{{ (messages | selectattr('role.x', 'ne', 'query') | list)[0].content }}" + ALL,
    "{{ (messages | rejectattr('role.x', 'eq', 'query') | list)[0].content }}" + ALL,
    "{{ (messages | selectattr('0', 'ne', 'query') | list)[0].content }}" + ALL,
    "{% for m in messages if true %}{{ m.content }}{% endfor %}",
    "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
    "{% for m in messages if loop is defined %}x{% endfor %}" + ALL,
    "{% for m in messages recursive %}{{ m.content }}{% endfor %}",
    *("q\n" + blank + " {% if true %}x{% endif %}" + ALL for blank in ("\xa0", "\u3000", "\u2028")),
    "\xa0{% if true %}x{% endif %}" + ALL, "\xe9{% if true %}x{% endif %}" + ALL,
    "q\n \xa0{# c #}" + ALL,
]


def case(source, prompt, structured, known):
    """"opened": whether encore is to render it. It needs both texts in the result, and gives a
    list of contents no text."""
    found = rendered(source, prompt, structured)
    text = found.get("rendered", "")
    opened = known and "QQ" in text and "DD" in text and "[{" not in text
    return {"source": source, "prompt": prompt, "structured": structured, "opened": opened, **found}


def chat_templates():
    """Each template with and without a prompt; those of KNOWN with both kinds of contents."""
    return [case(source, prompt, structured, known)
            for known, sources in ((True, KNOWN), (False, OTHER)) for source in sources
            for prompt in ("", "P p") for structured in ((False, True) if known else (False,))]
