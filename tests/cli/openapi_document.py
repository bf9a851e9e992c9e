# SPDX-License-Identifier: MIT
"""The part of OpenAPI 3.1 that admin/openapi.json uses, and checks of responses against the document.

See openapi.py.
"""
import json
import os
import re
import sys

try:
    import jsonschema
except ImportError:
    # Debian's package belongs to Debian's own Python, which may not be the first one in PATH.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: install python3-jsonschema")
    sys.exit(77)

METHODS = ("get", "put", "post", "delete")


def no_doubles(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a member appears twice")
    return dict(pairs)


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def parse(text):
    return json.loads(text, object_pairs_hook=no_doubles, parse_constant=no_constant)


class Document:
    def __init__(self, doc):
        self.doc = doc
        self.paths = doc["paths"]
        self.validators = {}  # keyed by id() of the schemas, which are parts of `doc`

    def resolved(self, part):
        while "$ref" in part:
            where = self.doc
            for key in part["$ref"].removeprefix("#/").split("/"):
                where = where[key.replace("~1", "/").replace("~0", "~")]
            part = where
        return part

    def operations(self):
        """(method, path, operation) for every operation."""
        return [(method.upper(), path, item[method]) for path, item in self.paths.items()
                for method in METHODS if method in item]

    def parameters(self, path, operation):
        both = self.paths[path].get("parameters", []) + operation.get("parameters", [])
        return [self.resolved(p) for p in both]

    def errors_of(self, value, schema):
        """What is wrong with `value`; "" if nothing is."""
        validator = self.validators.get(id(schema))
        if not validator:
            whole = dict(schema, components=self.doc["components"])
            validator = self.validators[id(schema)] = jsonschema.Draft202012Validator(whole)
        found = sorted(validator.iter_errors(value), key=lambda e: len(e.absolute_path), reverse=True)
        return "; ".join(f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in found[:3])

    def answer_errors(self, method, path, status, content_type, body):
        """What is wrong with a response; "" if nothing is."""
        operation = self.paths[path]["get" if method == "HEAD" else method.lower()]
        answer = operation["responses"].get(str(status))
        if answer is None:
            answer = self.resolved(operation["responses"]["default"])
            if status not in answer["x-statuses"]:
                return f"{status} is not documented"
        if "content" not in self.resolved(answer):
            return f"{status} has a body" if body else ""
        media = content_type.split(";")[0].strip()
        content = self.resolved(answer)["content"]
        if media not in content:
            return f"{status} with {media} is not documented"
        if method == "HEAD":
            return "HEAD has a body" if body else ""
        try:
            value = parse(body) if media.endswith("json") else body.decode()
        except ValueError as e:
            return f"not {media}: {e}"
        if media == "application/problem+json" and value.get("status") != status:
            return f"a problem with status {value.get('status')} in a response with status {status}"
        return self.errors_of(value, content[media]["schema"])

    def body_errors(self, method, path, body):
        """What is wrong with the body of a request; "" if nothing is."""
        request = self.resolved(self.paths[path][method.lower()].get("requestBody", {}))
        if not body:
            return "the body is missing" if request.get("required") else ""
        try:
            return self.errors_of(parse(body), request["content"]["application/json"]["schema"])
        except ValueError as e:
            return str(e)

    def against(self, index):
        """How the routes of the index and of the document differ."""
        told = {(r["method"], r["path"]) for r in index["routes"]}
        mine = {(method, path) for method, path, _ in self.operations()}
        return [f"{m} {p} is not in the document" for m, p in sorted(told - mine)] + \
               [f"{m} {p} is only in the document" for m, p in sorted(mine - told)]


def walk(part, at="#"):
    yield at, part
    members = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in members:
        yield from walk(value, f"{at}/{key}")


def faults_of(d):
    """One sentence for each fault of the document itself, by OpenAPI's rules and by our own."""
    faults, used = [], set()

    def check(good, what):
        if not good:
            faults.append(what)

    for at, part in walk(d.doc):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("$ref"), str):
            used.add(part["$ref"])
            try:
                d.resolved(part)
            except KeyError:
                check(False, f"{at}: {part['$ref']} does not exist")
        if part.get("type") == "object":
            check("additionalProperties" in part, f"{at} does not say whether more members are allowed")
            check(set(part.get("required", [])) <= set(part.get("properties", {})), f"{at} requires what it does not describe")
    for kind, parts in d.doc["components"].items():
        for name, part in parts.items():
            check(kind == "securitySchemes" or f"#/components/{kind}/{name}" in used, f"components/{kind}/{name} is not used")
            if kind == "schemas":
                jsonschema.Draft202012Validator.check_schema(part)
    ids = [operation["operationId"] for _, _, operation in d.operations()]
    check(len(set(ids)) == len(ids), "an operationId appears twice")
    tags = {tag["name"] for tag in d.doc["tags"]}
    for method, path, operation in d.operations():
        names = {p["name"] for p in d.parameters(path, operation) if p["in"] == "path"}
        check(names == set(re.findall(r"{(\w+)}", path)), f"{method} {path}: parameters differ from those in the path")
        check(bool(operation["summary"]) and set(operation["tags"]) <= tags, f"{method} {path}: summary or tags")
        check("200" in operation["responses"] and "default" in operation["responses"], f"{method} {path}: responses")
    return faults
