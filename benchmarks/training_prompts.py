"""Build the training prompts of the SmolLM2 drafter from folders of public prompt sets.

    python benchmarks/training_prompts.py OUT.jsonl --gsm8k DIR --alpaca-seed DIR \
        --self-instruct DIR --arena-hard DIR --ifeval DIR [--answers DIR] [--seed N] [--limit N]

Only gsm8k's train split is read. With --answers, the target's answers of an earlier round become
passages to summarise, translate and ask about. Arena-Hard and IFEval are evaluation sets, read for
their prompts; none of the sets that eyas reports on (its own prompts, Spec-Bench, MT-bench, gsm8k's
test split) is read.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from eyas.data.prompts import Prompt, one_turn, write_prompts

LONGEST_WORDS = 130

TOPICS = """
photosynthesis; the water cycle; plate tectonics; black holes; the Roman Empire; the French
Revolution; the Silk Road; the printing press; the steam engine; vaccines; antibiotics; the human
heart; the immune system; DNA; evolution; gravity; electricity; magnets; solar panels; wind
turbines; nuclear energy; batteries; the internet; computer viruses; encryption; machine learning;
databases; the Python language; video games; mobile phones; space travel; the Moon; Mars; comets;
volcanoes; earthquakes; hurricanes; glaciers; deserts; rainforests; coral reefs; whales; dolphins;
bees; ants; wolves; horses; dogs; cats; birds of prey; penguins; dinosaurs; mushrooms; trees;
gardening; composting; farming; bread; cheese; coffee; tea; chocolate; pasta; rice; soup; salads;
healthy eating; sleep; stress; meditation; yoga; running; swimming; football; chess; cycling;
hiking; camping; photography; painting; sculpture; the violin; the piano; jazz; opera; poetry;
novels;
fairy tales; theatre; film making; journalism; public speaking; job interviews; teamwork;
leadership; saving money; credit cards; inflation; taxes; insurance; startups; marketing;
customer service; project management; time management; learning a language; teaching children;
homework; universities; libraries; museums; city life; village life; public transport; bicycles;
electric cars; trains; airplanes; bridges; skyscrapers; recycling; plastic waste; clean water;
climate change; democracy; elections; human rights; the United Nations; the Olympics; festivals;
weddings; birthdays; friendship; family; grandparents; honesty; courage; creativity; curiosity;
Japan; Brazil; Egypt; India; Kenya; Norway; Canada; Australia; Mexico; Greece; Iceland; Peru;
the Great Wall of China; the Eiffel Tower; the Amazon river; the Sahara; Mount Everest; the Arctic;
the Atlantic Ocean; Leonardo da Vinci; Marie Curie; Albert Einstein; Isaac Newton; Shakespeare;
Beethoven; Cleopatra; Gandhi; Nelson Mandela; Ada Lovelace; Charles Darwin; Galileo; the telescope;
the microscope; the compass; clocks; paper; glass; steel; gold; salt; silk; cotton; leather;
""".replace("\n", " ").split(";")

OPEN = (
    "What is {} and why does it matter?",
    "Explain {} to a ten-year-old.",
    "Write a short story about {}.",
    "Give me five interesting facts about {}.",
    "Write a friendly email to a colleague about {}.",
    "What are the advantages and disadvantages of {}?",
    "Write a short blog post about {}.",
    "I want to learn more about {}. Where should I start?",
    "Write a poem about {}.",
    "How did {} change over time?",
    "Imagine you are an expert on {}. Give me some advice.",
    "Write a dialogue between two friends who talk about {}.",
    "What are common mistakes that people make about {}?",
    "Compare {} and {}.",
    "Describe {} in one paragraph.",
    "Write three questions and answers about {}.",
)
ASK = (
    "Who is known for {}?",
    "When did {} first appear?",
    "Where can I find {}?",
    "What is the most important thing to know about {}?",
    "Why do people care about {}?",
    "How does {} work?",
    "What is another word for {}?",
    "Is {} good for us?",
)
LANGUAGES = ("French", "German", "Spanish", "Italian", "Portuguese")
TRANSLATE = (
    "Translate the following text into {language}: {text}",
    "Translate this sentence to {language}.\n\n{text}",
    'How do you say this in {language}? "{text}"',
)
SUMMARISE = (
    "Summarize the following text in a few sentences.\n\n{text}",
    "Summarize: {text}",
    "What are the main points of this text?\n\n{text}",
    "{text}\n\nWrite a short summary of the text above.",
)
GROUNDED = (
    "Use the context to answer the question.\n\nContext: {text}\n\nQuestion: {question}",
    "Answer the question based on the passage below.\n\n{text}\n\nQuestion: {question}\nAnswer:",
    "You are given these documents:\n[1] {text}\n[2] {other}\n\nUsing them, answer: {question}",
)
QUESTIONS = (
    "What is the passage mainly about?",
    "Which facts are mentioned?",
    "What does the author want to say?",
    "What is the most important point, and why?",
    "What can we learn from it?",
)


def main() -> None:
    """Write the prompts and say how many of each category there are."""
    options = _options()
    chance = random.Random(options.seed)
    topics = [topic.strip() for topic in TOPICS if topic.strip()]
    texts = list(_texts(options))
    prompts = list(_collected(options)) + list(_open(topics, chance)) + list(_own_math(chance))
    chance.shuffle(texts)
    prompts += list(_on_texts(texts, topics, chance))
    chance.shuffle(prompts)
    if options.limit:
        prompts = prompts[: options.limit]
    write_prompts(options.out, prompts)
    counts: dict[str, int] = {}
    for prompt in prompts:
        counts[prompt.category] = counts.get(prompt.category, 0) + 1
    print(len(prompts), "prompts:", counts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    for name in ("gsm8k", "alpaca-seed", "self-instruct", "arena-hard", "ifeval", "answers"):
        parser.add_argument(f"--{name}", type=Path, required=name != "answers")
    parser.add_argument("--tokenizer", help="needed with --answers")
    parser.add_argument("--math", type=int, default=900, help="how many of gsm8k's prompts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    return parser.parse_args()


def _rows(file: Path) -> list[dict]:
    # not splitlines(): prompts contain U+2028, which it would split at
    lines = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def _short(text: str, words: int = LONGEST_WORDS) -> str:
    parts = text.strip().split(" ")
    return " ".join(parts[:words])


def _collected(options: argparse.Namespace) -> Iterator[Prompt]:
    """The prompts of the public sets as they are, long ones cut."""
    questions = _rows(options.gsm8k / "train.jsonl")
    random.Random(options.seed).shuffle(questions)
    for number, row in enumerate(questions[: options.math]):
        yield one_turn(f"gsm8k-{number}", "math", row["question"])
    for version in ("v0.1", "v2.0"):
        for row in _rows(options.arena_hard / f"{version}.question.jsonl"):
            yield one_turn(f"arena-{row['uid'][:12]}", "conversation", _short(row["prompt"]))
    for row in _rows(options.ifeval / "input_data.jsonl"):
        yield one_turn(f"ifeval-{row['key']}", "conversation", _short(row["prompt"]))
    for row in _instructions(options):
        given = row["instances"][0]["input"].strip()
        content = _short(row["instruction"] + ("\n\n" + given if given else ""))
        yield one_turn(str(row["id"]), "conversation", content)


def _instructions(options: argparse.Namespace) -> list[dict]:
    return _rows(options.alpaca_seed / "seed_tasks.jsonl") + _rows(
        options.self_instruct / "user_oriented_instructions.jsonl"
    )


def _texts(options: argparse.Namespace) -> Iterator[str]:
    """Passages: instance texts of the instruction sets, and the target's earlier answers."""
    for row in _instructions(options):
        for instance in row["instances"]:
            for part in ("input", "output"):
                if len(instance[part].split()) >= 12:
                    yield _short(instance[part], 110)
    for row in _rows(options.gsm8k / "train.jsonl")[-400:]:
        yield row["question"]
    if options.answers is not None:
        from transformers import AutoTokenizer

        from eyas.data.conversation import read_conversations

        tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
        for conversation in read_conversations(options.answers):
            text = tokenizer.decode(conversation.answer_ids, skip_special_tokens=True)
            if conversation.category in ("conversation", "open") and len(text.split()) > 40:
                yield _short(text, 110)


def _open(topics: list[str], chance: random.Random) -> Iterator[Prompt]:
    for topic in topics:
        for template in chance.sample(OPEN, 7):
            content = template.format(topic, chance.choice(topics))
            yield one_turn(f"open-{topic}-{OPEN.index(template)}", "open", content)
        for template in chance.sample(ASK, 3):
            content = template.format(topic)
            yield one_turn(f"ask-{topic}-{ASK.index(template)}", "question", content)


def _own_math(chance: random.Random) -> Iterator[Prompt]:
    templates = (
        "What is {a} + {b} * {c}?",
        "Solve for x: {a}x + {b} = {c}",
        "A train travels {a} km in {c} hours. How far does it travel in {b} hours?",
        "What is {a}% of {b}?",
        "A rectangle is {a} cm long and {b} cm wide. What are its area and perimeter?",
        "I buy {c} apples for {a} cents each and pay with {b} dollars. How much change do I get?",
    )
    for number in range(240):
        a, b, c = chance.randint(2, 99), chance.randint(2, 60), chance.randint(2, 9)
        content = chance.choice(templates).format(a=a, b=b, c=c)
        yield one_turn(f"sum-{number}", "math", content)


def _on_texts(texts: list[str], topics: list[str], chance: random.Random) -> Iterator[Prompt]:
    for number, text in enumerate(texts):
        other = _short(chance.choice(texts), 50)
        question = chance.choice(QUESTIONS)
        content = chance.choice(GROUNDED).format(
            text=_short(text, 80), other=other, question=question
        )
        yield one_turn(f"grounded-{number}", "rag", content)
        content = chance.choice(SUMMARISE).format(text=text)
        yield one_turn(f"summary-{number}", "summarization", content)
        sentences = re.split(r"(?<=[.!?])\s+", text)
        sentence = _short(chance.choice(sentences), 40)
        if len(sentence.split()) >= 5:
            content = chance.choice(TRANSLATE).format(
                language=chance.choice(LANGUAGES), text=sentence
            )
            yield one_turn(f"translate-{number}", "translation", content)


if __name__ == "__main__":
    main()
