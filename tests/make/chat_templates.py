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
    """What transformers renders; an error's name where it does not."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def message(role, text):
        return {"role": role, "content": [{"type": "text", "text": text}] if structured else text}
    messages = [message("query", query), message("document", document)]
    if prompt:
        messages.insert(0, message("system", prompt))
    try:
        return render_jinja_template([messages], chat_template=source)[0][0]
    except Exception as error:
        return type(error).__name__


TEMPLATES = [
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
    # What encore has not.
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
]


def chat_templates():
    """Each template with and without a prompt, and with both kinds of contents."""
    return [{"source": source, "prompt": prompt, "structured": structured,
             "rendered": rendered(source, prompt, structured)}
            for source in TEMPLATES for prompt in ("", "P p") for structured in (False, True)]
